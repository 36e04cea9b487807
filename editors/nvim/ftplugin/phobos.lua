if vim.b.did_ftplugin then
  return
end
vim.b.did_ftplugin = 1

vim.bo.commentstring = '// %s'
vim.bo.comments = '://'
vim.bo.expandtab = true
vim.bo.shiftwidth = 2
vim.bo.softtabstop = 2
-- A new line after a `{` goes one step in, a closing brace one out.
vim.bo.cindent = true
vim.bo.cinoptions = 'L0,J1,+2'
-- Names of tensors in a span, such as `:+`, are no part of a word.
vim.bo.iskeyword = '@,48-57,_'
vim.b.undo_ftplugin =
  'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< cindent< cinoptions< iskeyword<'
