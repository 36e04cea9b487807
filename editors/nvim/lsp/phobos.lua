-- Neovim 0.11 and later read this for `vim.lsp.enable('phobos')`.
return require('phobos').server()
