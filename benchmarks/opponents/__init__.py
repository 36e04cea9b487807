"""What ours is measured against, each in the form that its authors give it."""
