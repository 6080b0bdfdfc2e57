-- What reads the tables above.

local dscp_of = Field.new("ip.dsfield.dscp")

local by_width = {
  [1] = ProtoField.uint8, [2] = ProtoField.uint16, [3] = ProtoField.uint24,
  [4] = ProtoField.uint32, [8] = ProtoField.uint64,
}
local signed_by_width = { [4] = ProtoField.int32, [8] = ProtoField.int64 }

-- A field of a protocol or of one of its messages, as Wireshark wants it declared.
local function declared(prefix, field)
  local name, bytes, read = field[1], field[3], field[4]
  local abbrev = prefix .. "." .. name
  if read == "uint" then return by_width[bytes](abbrev, name, base.DEC, field.names) end
  if read == "int" then return signed_by_width[bytes](abbrev, name, base.DEC) end
  if read == "double" then return ProtoField.double(abbrev, name) end
  if read == "bytes" then return ProtoField.bytes(abbrev, name) end
  -- Bits: the value is cut out by hand.
  local wide = field.len > 32 and ProtoField.uint64 or ProtoField.uint32
  return wide(abbrev, name, base.DEC, field.names)
end

-- Adds fields to a tree, as far as the message reaches.
local function add(tree, message, fields, of)
  for _, field in ipairs(fields) do
    local at, bytes = field[2], field[3]
    if at < 0 then at = message:len() + at end
    if at >= 0 and at + bytes <= message:len() then
      local range = message(at, bytes)
      if field[4] == "bits" then
        tree:add(of[field], range, range:bitfield(field.first, field.len))
      else
        tree:add(of[field], range)
      end
    end
  end
end

-- Reads numbers of a message; 0 where it is too short.
local function reader(tvb)
  return function(at, bytes)
    if at + bytes > tvb:len() then return 0 end
    return tvb(at, bytes):uint()
  end
end

for _, protocol in ipairs(protocols) do
  local proto = Proto(protocol.name, protocol.title)
  local of, all = {}, {}
  local function declare(prefix, fields)
    for _, field in ipairs(fields) do
      of[field] = declared(prefix, field)
      table.insert(all, of[field])
    end
  end
  declare(protocol.name, protocol.common)
  for _, message in pairs(protocol.messages) do
    declare(protocol.name .. "." .. message.name, message.fields)
    if message.rest then
      message.rest_field = ProtoField.bytes(
        protocol.name .. "." .. message.name .. "." .. message.rest[1], message.rest[1])
      table.insert(all, message.rest_field)
    end
  end
  local kind = ProtoField.string(protocol.name .. ".message", "message")
  local association = ProtoField.uint16(protocol.name .. ".seal.association", "association")
  local class = ProtoField.uint8(protocol.name .. ".seal.class", "class of service")
  local counter = ProtoField.uint64(protocol.name .. ".seal.counter", "counter")
  local tag = ProtoField.bytes(protocol.name .. ".seal.tag", "tag")
  for _, field in ipairs({ kind, association, class, counter, tag }) do table.insert(all, field) end
  proto.fields = all
  local odd = ProtoExpert.new(
    protocol.name .. ".odd_length", "the length is not that of the message",
    expert.group.MALFORMED, expert.severity.WARN)
  local unknown = ProtoExpert.new(
    protocol.name .. ".unknown", "no message has this code",
    expert.group.UNDECODED, expert.severity.WARN)
  proto.experts = { odd, unknown }
  proto.prefs.sealed = Pref.bool(
    "Datagrams have a seal", false,
    "The job has a key. Needed only for messages whose length does not say it.")

  local function seal_of(tree, tvb)
    local len = tvb:len()
    local part = tree:add(tvb(len - seal.len, seal.len), "seal")
    part:add(association, tvb(len - seal.counter, 2))
    local rest = tvb(len - seal.counter + 2, 6)
    part:add(class, rest(0, 1), math.floor(rest(0, 1):uint() / 4))
    part:add(counter, rest, rest:uint64():band(UInt64(0xffffffff, 0x3ff)))
    part:add(tag, tvb(len - seal.tag, seal.tag))
  end

  function proto.dissector(tvb, pinfo, root)
    local class = dscp_of()
    local u = reader(tvb)
    local message = protocol.messages[protocol.code(u, class and class.value)]
    pinfo.cols.protocol = protocol.title
    local tree = root:add(proto, tvb())
    if not message then
      tree:add_proto_expert_info(unknown)
      return
    end
    local len = tvb:len()
    local needed = message.len and message.len(u, len)
    local is_sealed = len >= seal.len
      and (needed and len == needed + seal.len or not needed and proto.prefs.sealed)
    local own = is_sealed and len - seal.len or len
    local body = tvb(0, own)
    pinfo.cols.info = message.name
    tree:append_text(", " .. message.name)
    tree:add(kind, body, message.name)
    add(tree, body, protocol.common, of)
    add(tree, body, message.fields, of)
    if message.rest then
      local begin = message.rest[2](u)
      local bytes = own - begin - message.rest[3]
      if bytes > 0 then tree:add(message.rest_field, tvb(begin, bytes)) end
    end
    if needed and own ~= needed then tree:add_proto_expert_info(odd) end
    if is_sealed then seal_of(tree, tvb) end
  end

  local function is_ours(tvb)
    if protocol.magic then
      return tvb:len() >= 4 and tvb(0, 4):string() == protocol.magic
    end
    local class = dscp_of()
    return protocol.classes ~= nil and class ~= nil and protocol.classes[class.value] == true
  end
  if protocol.magic or protocol.classes then
    proto:register_heuristic("udp", function(tvb, pinfo, tree)
      if not is_ours(tvb) then return false end
      proto.dissector(tvb, pinfo, tree)
      return true
    end)
  end
  local ports = DissectorTable.get("udp.port")
  if protocol.port then ports:add(protocol.port, proto) else ports:add_for_decode_as(proto) end
end
