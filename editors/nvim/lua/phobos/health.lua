-- `:checkhealth phobos`
local M = {}

local health = vim.health or require('health')
local start = health.start or health.report_start
local ok = health.ok or health.report_ok
local warn = health.warn or health.report_warn
local error_ = health.error or health.report_error
local info = health.info or health.report_info

function M.check()
  start('phobos')
  local phobos = require('phobos')
  if vim.fn.has('nvim-0.11') == 1 then
    ok('Neovim starts the server by vim.lsp.config and vim.lsp.enable')
  elseif vim.lsp.start then
    ok('Neovim starts the server by vim.lsp.start (before 0.11)')
  else
    warn('Neovim before 0.8: one server for all files', { 'Neovim 0.11 or newer is the best tested' })
  end

  local server = phobos.program()
  if not server then
    error_('no `phobos` on PATH and none in a .venv here', {
      'pip install phobos-tools',
      'or name it: require("phobos").setup{ cmd = { "/path/to/phobos", "lsp", "--stdio" } }',
    })
    return
  end
  local version = vim.fn.system({ server[1], '--version' })
  if vim.v.shell_error == 0 then
    ok(('%s: %s'):format(server[1], vim.trim(version)))
  else
    error_(('%s does not start: %s'):format(server[1], vim.trim(version)))
    return
  end

  local clients = phobos.clients()
  if #clients > 0 then
    for _, client in ipairs(clients) do
      ok(('server %d runs'):format(client.id))
    end
  else
    info('no server runs: it starts with the first .ph file')
  end
end

return M
