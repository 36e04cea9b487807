if vim.g.loaded_phobos then
  return
end
vim.g.loaded_phobos = true
require('phobos').start()
