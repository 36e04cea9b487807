-- Drives a real Neovim with the plugin through a .ph file, and writes what it saw as JSON into $PHOBOS_REPORT.
-- The judging is done in Python; here things are only asked and waited for.
local report = {}
local function wait(what, condition)
  if not vim.wait(60000, condition, 20) then
    error('waited in vain for ' .. what)
  end
end

local function get_clients()
  return require('phobos').clients()
end

local function here()
  return vim.api.nvim_get_current_buf()
end

local function put_cursor(pattern)
  vim.fn.cursor(1, 1)
  assert(vim.fn.search(pattern, 'cW') > 0, 'no ' .. pattern .. ' in the text')
end

local function request(method, params)
  local answers = vim.lsp.buf_request_sync(here(), method, params, 60000)
  for _, answer in pairs(answers or {}) do
    if answer.err then
      error(method .. ': ' .. answer.err.message)
    end
    if answer.result then
      return answer.result
    end
  end
end

local function position()
  local client = get_clients()[1]
  return vim.lsp.util.make_position_params(0, client.offset_encoding or 'utf-16')
end

local function diagnostics()
  local found = {}
  for _, d in ipairs(vim.diagnostic.get(here())) do
    table.insert(found, { line = d.lnum + 1, column = d.col + 1, code = d.code, severity = d.severity, message = d.message })
  end
  return found
end

local function lines()
  return table.concat(vim.api.nvim_buf_get_lines(here(), 0, -1, false), '\n')
end

local ok, problem = xpcall(function()
  vim.cmd('edit ' .. vim.env.PHOBOS_FILE)
  report.filetype = vim.bo.filetype
  report.syntax = vim.b.current_syntax
  report.commentstring = vim.bo.commentstring
  wait('the server', function() return #get_clients() > 0 end)
  report.started_by = (vim.lsp.config and vim.lsp.enable) and 'config' or 'start'
  if vim.env.PHOBOS_OLD then
    report.started_by = 'start'
  end
  report.encoding = get_clients()[1].offset_encoding

  wait('diagnostics', function() return #vim.diagnostic.get(here()) > 0 end)
  report.diagnostics = diagnostics()

  put_cursor('grid_barrier')
  vim.lsp.buf.hover()
  local float
  wait('the hover window', function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        float = window
        return true
      end
    end
  end)
  report.hover = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(float), 0, -1, false), '\n')
  vim.api.nvim_win_close(float, true)

  -- completion in code that is not finished
  put_cursor('grid_barrier')
  vim.cmd('normal! Ogrid_')
  vim.fn.cursor(vim.fn.line('.'), vim.fn.col('$'))
  local params = position()
  params.position.character = #vim.fn.getline('.')
  local completion = request('textDocument/completion', params)
  report.completion = {}
  for _, item in ipairs(completion and (completion.items or completion) or {}) do
    table.insert(report.completion, item.label)
  end
  vim.cmd('normal! dd')

  -- rename through the editor's own function
  put_cursor('\\<TILE\\>')
  vim.lsp.buf.rename('WIDTH')
  wait('the rename', function() return lines():find('WIDTH', 1, true) ~= nil end)
  report.renamed = lines()

  -- a fix, as the server offers it at the place of a diagnostic
  vim.cmd('edit! ' .. vim.env.PHOBOS_FIXABLE)
  wait('diagnostics of the second file', function() return #vim.diagnostic.get(here()) > 0 end)
  report.fixable = diagnostics()
  put_cursor('grid_barrier')
  local raw = {}
  for _, d in ipairs(vim.diagnostic.get(here())) do
    table.insert(raw, d.user_data and d.user_data.lsp or nil)
  end
  local at = position()
  report.actions = {}
  local actions = request('textDocument/codeAction', {
    textDocument = at.textDocument,
    range = { start = at.position, ['end'] = at.position },
    context = { diagnostics = raw, triggerKind = 1 },
  })
  for _, action in ipairs(actions or {}) do
    table.insert(report.actions, action.title)
  end
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action) return action.title:find('@persistent', 1, true) ~= nil end,
  })
  wait('the fix', function() return lines():find('@persistent', 1, true) ~= nil end)
  report.fixed = lines()
  wait('the end of the diagnostic', function()
    for _, d in ipairs(vim.diagnostic.get(here())) do
      if d.code == report.fixable[1].code then
        return false
      end
    end
    return true
  end)
  report.after_fix = diagnostics()

  -- format
  vim.api.nvim_buf_set_lines(here(), -1, -1, false, { '', 'kernel   loose( X:tensor<f32>[ N ] ){', 'X[0:+4]=X[0:+4]*2.0', '}' })
  vim.lsp.buf.format({ timeout_ms = 60000 })
  wait('the formatting', function() return lines():find('kernel loose(X: tensor<f32>[N]) {', 1, true) ~= nil end)
  report.formatted = lines()

  -- a killed server comes back when it is asked to
  local first = get_clients()[1].id
  vim.cmd('PhobosRestart')
  wait('the new server', function()
    local clients = get_clients()
    return #clients == 1 and clients[1].id ~= first
  end)
  vim.cmd('edit! ' .. vim.env.PHOBOS_FILE)
  wait('diagnostics of the new server', function()
    return #vim.diagnostic.get(here()) > 0
  end)
  report.restarted = true

  vim.cmd('checkhealth phobos')
  report.health = lines()
end, debug.traceback)

report.problem = not ok and problem or nil
local file = assert(io.open(vim.env.PHOBOS_REPORT, 'w'))
file:write(vim.json and vim.json.encode(report) or vim.fn.json_encode(report))
file:close()
vim.cmd(ok and 'qa!' or 'cquit 1')
