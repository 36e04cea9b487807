if vim.filetype and vim.filetype.add then
  vim.filetype.add({ extension = { ph = 'phobos' } })
else
  vim.cmd('autocmd BufNewFile,BufRead *.ph set filetype=phobos')
end
