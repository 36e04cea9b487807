-- Starts the language server for .ph files in whichever way this Neovim has, and adds the commands.
--
-- Nothing has to be called: the plugin folder on the runtime path is enough. `require('phobos').setup{...}` before
-- the first .ph file changes the options below.
local M = {}

M.options = {
  -- The command of the server; nil: the first that is there of .venv/bin/phobos above the file, and phobos on PATH.
  cmd = nil,
  -- What the server is told, as in VS Code without the `phobos.` in front: { cards = { 'h200' }, ... }
  settings = {},
  -- Where a project begins.
  root_markers = { 'phobos.toml', 'pyproject.toml', '.git' },
  -- Called with the client and the buffer when the server has taken a buffer.
  on_attach = nil,
}

function M.setup(options)
  M.options = vim.tbl_deep_extend('force', M.options, options or {})
  if vim.lsp.config then
    vim.lsp.config('phobos', M.server())
  end
end

local windows = vim.fn.has('win32') == 1

local function in_project(directory)
  local tail = windows and '/.venv/Scripts/phobos.exe' or '/.venv/bin/phobos'
  local current = directory
  while current and current ~= '' do
    if vim.fn.executable(current .. tail) == 1 then
      return current .. tail
    end
    local parent = vim.fn.fnamemodify(current, ':h')
    if parent == current then
      return nil
    end
    current = parent
  end
end

-- The program that serves files in `directory`, or nil.
function M.program(directory)
  if M.options.cmd then
    return vim.deepcopy(M.options.cmd)
  end
  local found = in_project(directory or vim.fn.getcwd())
  if not found and vim.fn.executable('phobos') == 1 then
    found = 'phobos'
  end
  return found and { found, 'lsp', '--stdio' } or nil
end

local missing_told = false

local function tell_missing()
  if not missing_told then
    missing_told = true
    vim.notify('phobos: no `phobos` on PATH and none in a .venv above the file. Install it with '
      .. '`pip install phobos-tools`, or name it: require("phobos").setup{ cmd = { ... } }', vim.log.levels.WARN)
  end
end

local function root_of(file)
  local start = file ~= '' and vim.fn.fnamemodify(file, ':p:h') or vim.fn.getcwd()
  if vim.fs and vim.fs.find then
    local found = vim.fs.find(M.options.root_markers, { path = start, upward = true })[1]
    return found and vim.fs.dirname(found) or start
  end
  return start
end

-- What all ways of starting have in common.
local function common()
  -- An empty Lua table would go out as a list.
  local settings = next(M.options.settings) and M.options.settings or vim.empty_dict()
  return { settings = { phobos = settings }, init_options = { phobos = settings } }
end

-- The table for `vim.lsp.config` (0.11 and later).
function M.server()
  local server = common()
  server.filetypes = { 'phobos' }
  -- Asked for each buffer: with no program there is no server, and one message instead of an error a buffer.
  server.root_dir = function(buffer, on_dir)
    local file = vim.api.nvim_buf_get_name(buffer)
    if M.program(file ~= '' and vim.fn.fnamemodify(file, ':p:h') or nil) then
      on_dir(root_of(file))
    else
      tell_missing()
    end
  end
  server.cmd = function(dispatchers, config)
    local root = config and config.root_dir or vim.fn.getcwd()
    local program = assert(M.program(root))
    -- `on_dir` has found one; a project's own is looked for from its root.
    return vim.lsp.rpc.start(program, dispatchers, { cwd = root })
  end
  server.on_attach = function(client, buffer)
    M.attached(client, buffer)
  end
  return server
end

local function start_in(buffer)
  local file = vim.api.nvim_buf_get_name(buffer)
  local program = M.program(file ~= '' and vim.fn.fnamemodify(file, ':p:h') or nil)
  if not program then
    tell_missing()
    return
  end
  local server = common()
  server.name = 'phobos'
  server.cmd = program
  server.root_dir = root_of(file)
  server.on_attach = function(client, attached)
    M.attached(client, attached)
  end
  if vim.lsp.start then
    vim.lsp.start(server)
    return
  end
  -- 0.7: one client for everything.
  if not M.old_client then
    M.old_client = vim.lsp.start_client(server)
  end
  vim.lsp.buf_attach_client(buffer, M.old_client)
end

function M.start()
  if vim.lsp.config and vim.lsp.enable then
    vim.lsp.config('phobos', M.server())
    vim.lsp.enable('phobos')
  else
    vim.api.nvim_create_autocmd('FileType', {
      pattern = 'phobos',
      callback = function(event)
        start_in(event.buf)
      end,
    })
  end
end

function M.clients(buffer)
  local get = vim.lsp.get_clients or vim.lsp.get_active_clients
  return vim.tbl_filter(function(client)
    return client.name == 'phobos' and (not buffer or vim.lsp.buf_is_attached(buffer, client.id))
  end, get())
end

-- Runs in each buffer that the server has taken.
function M.attached(client, buffer)
  if vim.fn.has('nvim-0.10') == 0 then
    vim.keymap.set('n', 'K', vim.lsp.buf.hover, { buffer = buffer, desc = 'Phobos: hover' })
  end
  local function command(name, action, options)
    vim.api.nvim_buf_create_user_command(buffer, name, action, options or {})
  end
  command('PhobosRestart', M.restart, { desc = 'Restart the Phobos server' })
  command('PhobosRun', function(arguments)
    M.terminal('run', arguments.args ~= '' and { '--kernel', arguments.args } or {})
  end, { nargs = '?', desc = 'Run this file, or one kernel of it' })
  command('PhobosProve', function()
    M.terminal('check', { '--prove', '--output-format', 'full' })
  end, { desc = 'Show the findings of this file happen' })
  command('PhobosEmit', function(arguments)
    M.emit(arguments.fargs[1], arguments.fargs[2])
  end, {
    nargs = '*',
    complete = function(_, line)
      return #vim.split(line, '%s+') == 2 and { 'cuda', 'ptx', 'facts', 'contract' } or {}
    end,
    desc = 'Show CUDA (or ptx, facts, contract) of a kernel of this file',
  })
  if M.options.on_attach then
    M.options.on_attach(client, buffer)
  end
end

local function tool()
  local server = M.program(vim.fn.expand('%:p:h'))
  return server and server[1]
end

-- `phobos command FILE ...` in a terminal below.
function M.terminal(command, parameters)
  local program = tool()
  if not program then
    tell_missing()
    return
  end
  vim.cmd('silent update')
  local line = vim.list_extend({ program, command, vim.fn.expand('%:p') }, parameters)
  vim.cmd('botright new')
  if vim.fn.has('nvim-0.11') == 1 then
    vim.fn.jobstart(line, { term = true })
  else
    vim.fn.termopen(line)
  end
end

-- What `phobos emit` prints, in a window beside.
function M.emit(format, kernel)
  local program = tool()
  if not program then
    tell_missing()
    return
  end
  format = format or 'cuda'
  vim.cmd('silent update')
  local line = { program, 'emit', vim.fn.expand('%:p'), '--format', format }
  if kernel then
    vim.list_extend(line, { '--kernel', kernel })
  end
  local output = vim.fn.systemlist(line)
  if vim.v.shell_error ~= 0 then
    vim.notify(table.concat(output, '\n'), vim.log.levels.ERROR)
    return
  end
  vim.cmd('vnew')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, output)
  vim.bo.buftype = 'nofile'
  vim.bo.bufhidden = 'wipe'
  vim.bo.modifiable = false
  vim.bo.filetype = ({ cuda = 'cuda', ptx = 'asm', facts = 'json', contract = 'json' })[format] or ''
end

-- Stop the server, and start it anew for every .ph buffer that is loaded.
function M.restart()
  for _, client in ipairs(M.clients()) do
    if vim.fn.has('nvim-0.11') == 1 then
      client:stop()
    else
      client.stop()
    end
  end
  M.old_client = nil
  missing_told = false
  vim.wait(3000, function()
    return #M.clients() == 0
  end, 20)
  local function begin(buffer)
    if vim.lsp.config and vim.lsp.enable then
      vim.api.nvim_exec_autocmds('FileType', { group = 'nvim.lsp.enable', buffer = buffer })
    else
      start_in(buffer)
    end
  end
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == 'phobos' then
      if #vim.fn.win_findbuf(buffer) > 0 then
        begin(buffer)
      else
        -- Neovim asks for findings of what it shows; a hidden buffer that is opened now would stay without.
        vim.api.nvim_create_autocmd('BufWinEnter', {
          buffer = buffer,
          once = true,
          callback = function()
            begin(buffer)
          end,
        })
      end
    end
  end
end

return M
