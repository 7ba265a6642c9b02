-- One step for the server: compare the token, keep the larger one, carry out the commands.
-- KEYS[1]: the fence, a hash without a time to live. ARGV: token, nonce, then for each command its length and its parts.
local seen, nonce = redis.call('HGET', KEYS[1], 'token'), ARGV[2]
if seen and tonumber(seen) > tonumber(ARGV[1]) then
    return {'stale', seen}
end
-- The client may send a script again whose answer was lost; what has been carried out is not carried out twice.
local last = redis.call('HGET', KEYS[1], 'nonce') or ''
if nonce ~= '' and string.sub(last, 1, #nonce) == nonce then
    if last == nonce then return {'repeated'} end
    return {'failed', tonumber(string.sub(last, #nonce + 2)), 'the reason was lost with the first answer'}
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
local answers, at = {'done'}, 3
while at <= #ARGV do
    local length = tonumber(ARGV[at])
    local answer = redis.pcall(unpack(ARGV, at + 1, at + length))
    if type(answer) == 'table' and answer.err then
        -- The server does not undo: say how many were carried out.
        redis.call('HSET', KEYS[1], 'nonce', nonce .. ':' .. (#answers - 1))
        return {'failed', #answers - 1, answer.err}
    end
    answers[#answers + 1] = answer
    at = at + length + 1
end
if nonce ~= '' then redis.call('HSET', KEYS[1], 'nonce', nonce) end
return answers
