-- A Wireshark dissector for the datagrams of Olaf, and for iSwitch, ATP, Trio-ML and MINA's sharing
-- as Olaf speaks them. docs/wireshark.md says how to use it.
--
-- Made from crates/olaf-wire by `make dissector`: do not edit.

-- Bytes of the seal of a keyed datagram; counter and tag are from its end.
local seal = { len = 24, counter = 24, tag = 16 }

local protocols = {
  {
    name = "olaf", title = "Olaf",
    magic = "OLAF",
    code = function(u, dscp) return u(5, 1) end,
    common = {
      { "version", 4, 1, "uint" },
      { "kind", 5, 1, "uint", names = { [1] = "update", [2] = "acknowledgement", [3] = "model", [4] = "join", [5] = "welcome", [6] = "leave", [7] = "fetch", [8] = "notice", [9] = "layout", [10] = "signature", [11] = "ask_signature" } },
      { "flags", 6, 2, "uint" },
      { "wants_notices", 6, 2, "bits", first = 15, len = 1 },
      { "asks_path", 6, 2, "bits", first = 14, len = 1 },
      { "job", 8, 4, "uint" },
      { "cluster", 12, 4, "uint" },
      { "worker", 16, 4, "uint" },
      { "session", 20, 4, "uint" },
    },
    messages = {
      [1] = {
        name = "update",
        len = function(u, n) return 96 + 4 * u(68, 4) end,
        rest = { "lanes", function(u) return 96 end, 0 },
        fields = {
          { "sequence", 24, 4, "uint" },
          { "hop_sequence", 28, 4, "uint" },
          { "segment", 32, 4, "uint" },
          { "segments", 36, 4, "uint" },
          { "generated_oldest_ns", 40, 8, "uint" },
          { "generated_newest_ns", 48, 8, "uint" },
          { "version_oldest", 56, 4, "uint" },
          { "version_newest", 60, 4, "uint" },
          { "contributors", 64, 4, "uint" },
          { "weight", 72, 8, "double" },
          { "reward", 80, 8, "double" },
          { "hops", 88, 1, "uint" },
          { "flow_sequence", 92, 4, "uint" },
        },
      },
      [2] = {
        name = "acknowledgement",
        len = function(u, n) return 112 + 4 * u(44, 4) end,
        rest = { "lanes", function(u) return 112 end, 0 },
        fields = {
          { "acknowledges", 24, 4, "uint" },
          { "segment", 28, 4, "uint" },
          { "segments", 32, 4, "uint" },
          { "model_version", 36, 4, "uint" },
          { "parameters", 40, 4, "uint" },
          { "epoch", 48, 4, "uint" },
          { "delivered_version", 52, 4, "uint" },
          { "delivered_newest_ns", 56, 8, "uint" },
          { "server_time_ns", 64, 8, "uint" },
          { "active_clusters", 72, 2, "uint" },
          { "slots", 74, 2, "uint" },
          { "used", 76, 2, "uint" },
          { "switches", 78, 1, "uint" },
          { "round_us", 80, 4, "uint" },
          { "own_us", 84, 4, "uint" },
          { "mean_us", 88, 4, "uint" },
          { "flow_newest", 92, 4, "uint" },
          { "delivered", 96, 8, "uint" },
          { "ended", 104, 8, "uint" },
        },
      },
      [3] = {
        name = "model",
        len = function(u, n) return 112 + 4 * u(44, 4) end,
        rest = { "lanes", function(u) return 112 end, 0 },
        fields = {
          { "acknowledges", 24, 4, "uint" },
          { "segment", 28, 4, "uint" },
          { "segments", 32, 4, "uint" },
          { "model_version", 36, 4, "uint" },
          { "parameters", 40, 4, "uint" },
          { "epoch", 48, 4, "uint" },
          { "delivered_version", 52, 4, "uint" },
          { "delivered_newest_ns", 56, 8, "uint" },
          { "server_time_ns", 64, 8, "uint" },
          { "active_clusters", 72, 2, "uint" },
          { "slots", 74, 2, "uint" },
          { "used", 76, 2, "uint" },
          { "switches", 78, 1, "uint" },
          { "round_us", 80, 4, "uint" },
          { "own_us", 84, 4, "uint" },
          { "mean_us", 88, 4, "uint" },
          { "flow_newest", 92, 4, "uint" },
          { "delivered", 96, 8, "uint" },
          { "ended", 104, 8, "uint" },
        },
      },
      [4] = {
        name = "join",
        len = function(u, n) return math.max(72, u(64, 4)) end,
        rest = { "padding", function(u) return 72 end, 0 },
        fields = {
          { "have_version", 24, 4, "uint" },
          { "parameters", 28, 4, "uint" },
          { "segment_lanes", 32, 4, "uint" },
          { "clock_error_us", 36, 4, "uint" },
          { "sent_at_ns", 40, 8, "uint" },
          { "clock_offset_ns", 48, 8, "int" },
          { "hops", 56, 1, "uint" },
          { "round_trip_us", 60, 4, "uint" },
          { "padded_to", 64, 4, "uint" },
          { "nonce", 68, 4, "uint" },
        },
      },
      [5] = {
        name = "welcome",
        len = function(u, n) return math.max(120, u(112, 4)) end,
        rest = { "padding", function(u) return 120 end, 0 },
        fields = {
          { "code", 24, 1, "uint", names = { [0] = "welcome", [1] = "worker_id_in_use", [2] = "wrong_model_size", [3] = "wrong_segment_lanes", [4] = "unknown_job", [5] = "model_too_large", [6] = "full", [7] = "server_silent", [8] = "join_again", [9] = "loop", [10] = "not_admitted", [11] = "admission_pending", [12] = "path" } },
          { "ready", 25, 1, "uint" },
          { "rule", 26, 1, "uint" },
          { "aggregate", 27, 1, "uint" },
          { "version", 28, 4, "uint" },
          { "parameters", 32, 4, "uint" },
          { "segment_lanes", 36, 4, "uint" },
          { "epoch", 40, 4, "uint" },
          { "first_missing", 44, 4, "uint" },
          { "echoed_sent_at_ns", 48, 8, "uint" },
          { "received_at_ns", 56, 8, "uint" },
          { "sent_at_ns", 64, 8, "uint" },
          { "switch_epoch", 72, 4, "uint" },
          { "silent_ms", 76, 4, "uint" },
          { "step", 80, 1, "uint" },
          { "gate", 81, 1, "uint" },
          { "layout_missing", 84, 4, "uint" },
          { "factor", 88, 8, "double" },
          { "staleness_power", 96, 8, "double" },
          { "missing", 104, 8, "uint" },
          { "padded_to", 112, 4, "uint" },
          { "nonce", 116, 4, "uint" },
        },
      },
      [6] = {
        name = "leave",
        len = function(u, n) return 24 end,
        fields = {
        },
      },
      [7] = {
        name = "fetch",
        len = function(u, n) return 44 end,
        fields = {
          { "version", 24, 4, "uint" },
          { "first", 28, 4, "uint" },
          { "mask", 32, 8, "uint" },
          { "have_version", 40, 4, "uint" },
        },
      },
      [8] = {
        name = "notice",
        len = function(u, n) return 32 end,
        fields = {
          { "taken_newest_ns", 24, 8, "uint" },
        },
      },
      [9] = {
        name = "layout",
        len = function(u, n) return 40 + u(32, 4) end,
        rest = { "text", function(u) return 40 end, 0 },
        fields = {
          { "part", 24, 4, "uint" },
          { "total", 28, 4, "uint" },
        },
      },
      [10] = {
        name = "signature",
        len = function(u, n) return 104 end,
        fields = {
          { "version", 24, 4, "uint" },
          { "parameters", 28, 4, "uint" },
          { "segment_lanes", 32, 4, "uint" },
          { "epoch", 36, 4, "uint" },
          { "oldest", 40, 4, "uint" },
          { "question", 48, 8, "uint" },
          { "hash", 56, 32, "bytes" },
          { "tag", 88, 16, "bytes" },
        },
      },
      [11] = {
        name = "ask_signature",
        len = function(u, n) return 40 end,
        fields = {
          { "version", 24, 4, "uint" },
          { "question", 32, 8, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_reduce", title = "Olaf all-reduce",
    magic = "OLFR",
    code = function(u, dscp) return u(5, 1) end,
    common = {
      { "version", 4, 1, "uint" },
      { "kind", 5, 1, "uint", names = { [1] = "piece", [2] = "result", [3] = "ask", [4] = "want", [5] = "join", [6] = "welcome", [7] = "leave", [8] = "closed" } },
      { "flags", 6, 2, "uint" },
      { "partial", 6, 2, "bits", first = 15, len = 1 },
      { "resent", 6, 2, "bits", first = 14, len = 1 },
      { "not_finite", 6, 2, "bits", first = 13, len = 1 },
      { "congested", 6, 2, "bits", first = 12, len = 1 },
      { "job", 8, 4, "uint" },
      { "generation", 12, 4, "uint" },
      { "rank", 16, 4, "uint" },
      { "session", 20, 4, "uint" },
      { "operation", 24, 4, "uint" },
      { "block", 28, 4, "uint" },
      { "sent_at_us", 52, 4, "uint" },
    },
    messages = {
      [1] = {
        name = "piece",
        len = function(u, n) return 64 + 8 * u(58, 2) + u(56, 2) * (({[1]=4, [2]=2, [3]=2, [4]=4, [5]=8})[u(62, 1)] or 0) end,
        rest = { "lanes", function(u) return 64 + 8 * u(58, 2) end, 0 },
        fields = {
          { "lanes_of_operation", 32, 8, "uint" },
          { "first_block", 40, 4, "uint" },
          { "contributors", 44, 4, "uint" },
          { "holds", 48, 4, "uint" },
          { "lanes_here", 56, 2, "uint" },
          { "words", 58, 2, "uint" },
          { "call", 60, 2, "uint" },
          { "lane_type", 62, 1, "uint", names = { [1] = "f32", [2] = "f16", [3] = "bf16", [4] = "i32", [5] = "i64" } },
          { "operator", 63, 1, "uint", names = { [1] = "sum", [2] = "min", [3] = "max", [4] = "broadcast" } },
        },
      },
      [2] = {
        name = "result",
        len = function(u, n) return 64 + 8 * u(58, 2) + u(56, 2) * (({[1]=4, [2]=2, [3]=2, [4]=4, [5]=8})[u(62, 1)] or 0) end,
        rest = { "lanes", function(u) return 64 + 8 * u(58, 2) end, 0 },
        fields = {
          { "lanes_of_operation", 32, 8, "uint" },
          { "first_block", 40, 4, "uint" },
          { "contributors", 44, 4, "uint" },
          { "expected", 48, 4, "uint" },
          { "lanes_here", 56, 2, "uint" },
          { "words", 58, 2, "uint" },
          { "call", 60, 2, "uint" },
          { "lane_type", 62, 1, "uint", names = { [1] = "f32", [2] = "f16", [3] = "bf16", [4] = "i32", [5] = "i64" } },
          { "operator", 63, 1, "uint", names = { [1] = "sum", [2] = "min", [3] = "max", [4] = "broadcast" } },
        },
      },
      [3] = {
        name = "ask",
        len = function(u, n) return 64 end,
        fields = {
          { "mask", 32, 8, "uint" },
          { "holds", 48, 4, "uint" },
          { "awaited", 40, 4, "uint" },
          { "awaited_call", 44, 2, "uint" },
          { "awaited_lane_type", 46, 1, "uint", names = { [1] = "f32", [2] = "f16", [3] = "bf16", [4] = "i32", [5] = "i64" } },
          { "awaited_operator", 47, 1, "uint", names = { [1] = "sum", [2] = "min", [3] = "max", [4] = "broadcast" } },
          { "awaited_lanes", 56, 8, "uint" },
        },
      },
      [4] = {
        name = "want",
        len = function(u, n) return 64 end,
        fields = {
          { "mask", 32, 8, "uint" },
          { "holds", 48, 4, "uint" },
        },
      },
      [5] = {
        name = "join",
        len = function(u, n) return 64 end,
        fields = {
          { "workers", 32, 4, "uint" },
          { "contributors", 36, 4, "uint" },
          { "deadline_us", 40, 4, "uint" },
          { "block_bytes", 44, 4, "uint" },
          { "datagram_bytes", 48, 4, "uint" },
          { "nonce", 28, 4, "uint" },
          { "program", 56, 8, "uint" },
        },
      },
      [6] = {
        name = "welcome",
        len = function(u, n) return 64 end,
        fields = {
          { "nonce", 28, 4, "uint" },
          { "workers", 32, 4, "uint" },
          { "here", 36, 4, "uint" },
          { "slots", 40, 4, "uint" },
          { "block_bytes", 44, 4, "uint" },
          { "cores", 48, 4, "uint" },
          { "code", 62, 1, "uint", names = { [1] = "welcome", [2] = "waiting", [3] = "full", [4] = "refused", [5] = "other_version", [6] = "other_program", [7] = "rank_taken", [8] = "contested" } },
        },
      },
      [7] = {
        name = "leave",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [8] = {
        name = "closed",
        len = function(u, n) return 64 end,
        fields = {
          { "culprit", 44, 4, "uint" },
          { "reason", 62, 1, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
          { "culprit_call", 28, 2, "uint" },
          { "culprit_lane_type", 30, 1, "uint", names = { [1] = "f32", [2] = "f16", [3] = "bf16", [4] = "i32", [5] = "i64" } },
          { "culprit_operator", 31, 1, "uint", names = { [1] = "sum", [2] = "min", [3] = "max", [4] = "broadcast" } },
          { "culprit_lanes", 32, 8, "uint" },
          { "others_call", 48, 2, "uint" },
          { "others_lane_type", 50, 1, "uint", names = { [1] = "f32", [2] = "f16", [3] = "bf16", [4] = "i32", [5] = "i64" } },
          { "others_operator", 51, 1, "uint", names = { [1] = "sum", [2] = "min", [3] = "max", [4] = "broadcast" } },
          { "others_lanes", 52, 8, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_keys", title = "Olaf handshake of keys",
    magic = "OLAK",
    code = function(u, dscp) return u(5, 1) end,
    common = {
      { "version", 4, 1, "uint" },
      { "kind", 5, 1, "uint", names = { [1] = "hello", [2] = "cookie", [3] = "open", [4] = "opened", [5] = "unknown", [6] = "no_key", [0] = "version_notice" } },
      { "association", 6, 2, "uint" },
      { "key_name", 8, 8, "bytes" },
      { "initiator", 16, 16, "bytes" },
      { "responder", 32, 16, "bytes" },
      { "cookie_ns", 48, 8, "uint" },
      { "cookie", 56, 16, "bytes" },
    },
    messages = {
      [1] = {
        name = "hello",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [2] = {
        name = "cookie",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [3] = {
        name = "open",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [4] = {
        name = "opened",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [5] = {
        name = "unknown",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [6] = {
        name = "no_key",
        len = function(u, n) return 72 end,
        fields = {
        },
      },
      [0] = {
        name = "version_notice",
        len = function(u, n) return 6 end,
        fields = {
        },
      },
    },
  },
  {
    name = "olaf_iswitch", title = "iSwitch",
    classes = { [43] = true, [35] = true },
    code = function(u, dscp) return (dscp == 35 and 0 or u(0, 1)) end,
    common = {
    },
    messages = {
      [0] = {
        name = "data",
        rest = { "floats", function(u) return 8 end, 0 },
        fields = {
          { "generation", 0, 1, "uint" },
          { "last", 0, 8, "bits", first = 8, len = 1 },
          { "missing", 0, 8, "bits", first = 9, len = 11 },
          { "index", 0, 8, "bits", first = 20, len = 44 },
        },
      },
      [1] = {
        name = "join",
        len = function(u, n) return (n == 40 and 40 or 36) end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "wire_version", 2, 1, "uint" },
          { "sender", 3, 1, "uint" },
          { "job", 4, 4, "uint" },
          { "session", 8, 4, "uint" },
          { "rank", 12, 4, "uint" },
          { "workers", 16, 4, "uint" },
          { "contributors", 20, 4, "uint" },
          { "packet_floats", 24, 4, "uint" },
          { "operations", 28, 4, "uint" },
          { "program", 32, 4, "uint" },
          { "nonce", 36, 4, "uint" },
        },
      },
      [2] = {
        name = "leave",
        len = function(u, n) return 12 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "job", 4, 4, "uint" },
          { "session", 8, 4, "uint" },
        },
      },
      [3] = {
        name = "reset",
        len = function(u, n) return 4 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
        },
      },
      [4] = {
        name = "set_h",
        len = function(u, n) return 8 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "h", 4, 4, "uint" },
        },
      },
      [5] = {
        name = "fbcast",
        len = function(u, n) return 24 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "sent_at_us", 4, 4, "uint" },
          { "index", 8, 8, "uint" },
          { "mask", 16, 8, "uint" },
        },
      },
      [6] = {
        name = "help",
        len = function(u, n) return 24 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "sent_at_us", 4, 4, "uint" },
          { "index", 8, 8, "uint" },
          { "mask", 16, 8, "uint" },
        },
      },
      [7] = {
        name = "halt",
        len = function(u, n) return 16 end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "reason", 2, 1, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
          { "culprit", 4, 4, "uint" },
          { "calls", 8, 1, "uint" },
          { "index", 8, 8, "bits", first = 8, len = 56 },
        },
      },
      [8] = {
        name = "ack",
        len = function(u, n) return (u(3, 1) == 1 and (n == 52 and 52 or 48) or 16) end,
        fields = {
          { "action", 0, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "generation", 1, 1, "uint" },
          { "outcome", 2, 1, "uint", names = { [1] = "success", [2] = "waiting", [3] = "full", [4] = "refused", [5] = "other_version", [6] = "other_program", [7] = "rank_taken", [8] = "contested" } },
          { "of", 3, 1, "uint", names = { [1] = "join", [2] = "leave", [3] = "reset", [4] = "set_h", [5] = "fbcast", [6] = "help", [7] = "halt", [8] = "ack" } },
          { "sent_at_us", 4, 4, "uint" },
          { "index", 8, 8, "uint" },
          { "member", 16, 4, "uint" },
          { "rank", 20, 4, "uint" },
          { "workers", 24, 4, "uint" },
          { "here", 28, 4, "uint" },
          { "slots", 32, 4, "uint" },
          { "packet_floats", 36, 4, "uint" },
          { "operations", 40, 4, "uint" },
          { "session", 44, 4, "uint" },
          { "nonce", 48, 4, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_trio", title = "Trio-ML",
    port = 12000,
    code = function(u, dscp) return math.floor(u(5, 1) / 16) end,
    common = {
      { "job", 0, 1, "uint" },
      { "age_op", 5, 1, "bits", first = 0, len = 4, names = { [0] = "block", [1] = "aged", [2] = "hello", [3] = "welcome", [4] = "ask", [5] = "want", [6] = "closed", [7] = "leave", [8] = "straggler", [9] = "gone" } },
      { "final", 5, 1, "bits", first = 4, len = 1 },
      { "degraded", 5, 1, "bits", first = 5, len = 1 },
      { "src_id", 6, 1, "uint" },
      { "src_cnt", 7, 1, "uint" },
      { "call", 10, 2, "bits", first = 0, len = 4 },
      { "grad_cnt", 10, 2, "bits", first = 4, len = 12 },
    },
    messages = {
      [0] = {
        name = "block",
        len = function(u, n) return 12 + 4 * (u(10, 2) % 4096) end,
        rest = { "gradients", function(u) return 12 end, 0 },
        fields = {
          { "block_id", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
        },
      },
      [1] = {
        name = "aged",
        len = function(u, n) return 12 + 4 * (u(10, 2) % 4096) end,
        rest = { "gradients", function(u) return 12 end, 0 },
        fields = {
          { "block_id", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
        },
      },
      [2] = {
        name = "hello",
        len = function(u, n) return 12 + 4 * (u(10, 2) % 4096) end,
        fields = {
          { "term", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "session", 12, 4, "uint" },
          { "workers", 16, 4, "uint" },
          { "gradients", 20, 4, "uint" },
          { "timeout_ms", 24, 4, "uint" },
          { "window", 28, 4, "uint" },
          { "sent_at_us", 32, 4, "uint" },
          { "nonce", 36, 4, "uint" },
          { "program", 40, 8, "uint" },
        },
      },
      [3] = {
        name = "welcome",
        len = function(u, n) return 12 + 4 * (u(10, 2) % 4096) end,
        fields = {
          { "term", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "session", 12, 4, "uint" },
          { "code", 16, 4, "uint", names = { [1] = "welcome", [2] = "waiting", [3] = "full", [4] = "refused", [5] = "other_version", [6] = "other_program", [7] = "rank_taken", [8] = "contested" } },
          { "gradients", 20, 4, "uint" },
          { "here", 24, 4, "uint" },
          { "window", 28, 4, "uint" },
          { "newest", 32, 4, "uint" },
          { "sent_at_us", 36, 4, "uint" },
          { "nonce", 40, 4, "uint" },
        },
      },
      [4] = {
        name = "ask",
        len = function(u, n) return 40 end,
        fields = {
          { "block_id", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "session", 12, 4, "uint" },
          { "term", 16, 4, "uint" },
          { "mask", 20, 8, "uint" },
          { "held_generation", 28, 4, "uint" },
          { "held_block", 32, 4, "uint" },
          { "sent_at_us", 36, 4, "uint" },
        },
      },
      [5] = {
        name = "want",
        len = function(u, n) return 32 end,
        fields = {
          { "block_id", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "session", 12, 4, "uint" },
          { "term", 16, 4, "uint" },
          { "mask", 20, 8, "uint" },
          { "sent_at_us", 28, 4, "uint" },
        },
      },
      [6] = {
        name = "closed",
        len = function(u, n) return 24 end,
        fields = {
          { "term", 1, 4, "uint" },
          { "calls", 7, 1, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "reason", 12, 4, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
          { "mask", 16, 8, "uint" },
        },
      },
      [7] = {
        name = "leave",
        len = function(u, n) return 16 end,
        fields = {
          { "term", 1, 4, "uint" },
          { "reason", 7, 1, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
          { "session", 12, 4, "uint" },
        },
      },
      [8] = {
        name = "straggler",
        len = function(u, n) return 20 end,
        fields = {
          { "term", 1, 4, "uint" },
          { "straggling", 12, 4, "uint", names = { [0] = "not", [1] = "temporary", [2] = "permanent" } },
          { "events", 16, 4, "uint" },
        },
      },
      [9] = {
        name = "gone",
        len = function(u, n) return 20 end,
        fields = {
          { "block_id", 1, 4, "uint" },
          { "gen_id", 8, 2, "uint" },
          { "session", 12, 4, "uint" },
          { "term", 16, 4, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_atp", title = "ATP",
    code = function(u, dscp) return (u(11, 1) >= 128 and 2 + u(8, 1) or u(10, 1) % 2) end,
    common = {
      { "job", 12, 2, "uint" },
      { "server", 10, 1, "bits", first = 1, len = 2 },
      { "control", 11, 1, "bits", first = 0, len = 1 },
    },
    messages = {
      [0] = {
        name = "gradient",
        rest = { "values", function(u) return (18 + (u(11, 1) % 8 >= 4 and 12 or 0)) end, 12 },
        fields = {
          { "bitmap0", 0, 4, "uint" },
          { "bitmap1", 4, 4, "uint" },
          { "fan_in0", 8, 1, "uint" },
          { "fan_in1", 9, 1, "uint" },
          { "overflow", 10, 1, "bits", first = 0, len = 1 },
          { "ecn", 10, 1, "bits", first = 4, len = 1 },
          { "resend", 10, 1, "bits", first = 5, len = 1 },
          { "collision", 10, 1, "bits", first = 6, len = 1 },
          { "edge", 11, 1, "bits", first = 7, len = 1 },
          { "same_switch", 11, 1, "bits", first = 6, len = 1 },
          { "upper", 11, 1, "bits", first = 5, len = 1 },
          { "sequence", 14, 2, "uint" },
          { "index", 16, 2, "uint" },
          { "generation", -12, 2, "uint" },
          { "call", -10, 1, "bits", first = 0, len = 4 },
          { "tensor", -10, 3, "bits", first = 4, len = 20 },
          { "wraps", -7, 3, "uint" },
          { "tensor_length", -4, 4, "uint" },
        },
      },
      [1] = {
        name = "parameters",
        rest = { "values", function(u) return (18 + (u(11, 1) % 8 >= 4 and 12 or 0)) end, 12 },
        fields = {
          { "bitmap0", 0, 4, "uint" },
          { "bitmap1", 4, 4, "uint" },
          { "fan_in0", 8, 1, "uint" },
          { "fan_in1", 9, 1, "uint" },
          { "overflow", 10, 1, "bits", first = 0, len = 1 },
          { "ecn", 10, 1, "bits", first = 4, len = 1 },
          { "resend", 10, 1, "bits", first = 5, len = 1 },
          { "collision", 10, 1, "bits", first = 6, len = 1 },
          { "edge", 11, 1, "bits", first = 7, len = 1 },
          { "same_switch", 11, 1, "bits", first = 6, len = 1 },
          { "upper", 11, 1, "bits", first = 5, len = 1 },
          { "sequence", 14, 2, "uint" },
          { "index", 16, 2, "uint" },
          { "generation", -12, 2, "uint" },
          { "call", -10, 1, "bits", first = 0, len = 4 },
          { "tensor", -10, 3, "bits", first = 4, len = 20 },
          { "wraps", -7, 3, "uint" },
          { "tensor_length", -4, 4, "uint" },
        },
      },
      [3] = {
        name = "join",
        fields = {
          { "nonce", 14, 4, "uint" },
          { "session", 18, 4, "uint" },
          { "rank", 22, 4, "uint" },
          { "workers", 26, 4, "uint" },
          { "generation", 30, 2, "uint" },
          { "closed", 32, 2, "uint" },
          { "values_of_packet", 34, 2, "uint" },
          { "aggregators", 36, 4, "uint" },
          { "first_switch", 40, 4, "uint" },
          { "second_switch", 44, 4, "uint" },
          { "sent_at_us", 48, 4, "uint" },
          { "scale", 52, 8, "double" },
          { "servers", 60, 1, "uint" },
          { "window", 61, 2, "uint" },
          { "operations", 63, 4, "uint" },
          { "program", 67, 8, "uint" },
          { "third_switch", 75, 4, "uint" },
          { "fourth_switch", 79, 4, "uint" },
        },
      },
      [4] = {
        name = "welcome",
        fields = {
          { "nonce", 14, 4, "uint" },
          { "session", 18, 4, "uint" },
          { "rank", 22, 4, "uint" },
          { "workers", 26, 4, "uint" },
          { "here", 30, 4, "uint" },
          { "code", 34, 1, "uint", names = { [1] = "welcome", [2] = "waiting", [3] = "full", [4] = "refused", [5] = "other_version", [6] = "other_program", [7] = "rank_taken", [8] = "contested" } },
          { "edge", 35, 1, "bits", first = 7, len = 1 },
          { "same_switch", 35, 1, "bits", first = 6, len = 1 },
          { "generation", 36, 2, "uint" },
          { "life", 38, 2, "uint" },
          { "values_of_packet", 40, 2, "uint" },
          { "window", 42, 2, "uint" },
          { "bitmap0", 44, 4, "uint" },
          { "bitmap1", 48, 4, "uint" },
          { "fan_in0", 52, 1, "uint" },
          { "fan_in1", 53, 1, "uint" },
          { "aggregators", 54, 4, "uint" },
          { "sent_at_us", 58, 4, "uint" },
          { "sequence", 62, 8, "uint" },
          { "operations", 70, 4, "uint" },
          { "upper", 74, 12, "bytes" },
        },
      },
      [5] = {
        name = "leave",
        len = function(u, n) return 25 end,
        fields = {
          { "session", 18, 4, "uint" },
          { "life", 22, 2, "uint" },
          { "reason", 24, 1, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
        },
      },
      [6] = {
        name = "closed",
        len = function(u, n) return 30 end,
        fields = {
          { "life", 18, 2, "uint" },
          { "reason", 20, 1, "uint", names = { [1] = "dead", [2] = "left", [3] = "joined", [4] = "mismatch", [5] = "refused", [6] = "renewed", [7] = "unknown", [8] = "switch_silent" } },
          { "calls", 21, 1, "uint" },
          { "tensor", 22, 4, "uint" },
          { "culprit", 26, 4, "uint" },
        },
      },
      [7] = {
        name = "left",
        len = function(u, n) return 22 end,
        fields = {
          { "session", 18, 4, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_mina", title = "MINA sharing",
    magic = "MINA",
    code = function(u, dscp) return u(5, 1) end,
    common = {
      { "version", 4, 1, "uint" },
      { "kind", 5, 1, "uint", names = { [1] = "prepare", [2] = "ready", [3] = "commit", [4] = "abort", [5] = "settled", [6] = "ask", [7] = "in_doubt", [8] = "bye", [9] = "progress" } },
      { "from_party", 6, 1, "uint", names = { [0] = "controller", [1] = "host" } },
      { "job", 8, 8, "uint" },
      { "epoch", 16, 8, "uint" },
      { "round", 24, 8, "uint" },
      { "from", 56, 2, "uint" },
      { "to", 58, 2, "uint" },
      { "to_party", 60, 1, "uint", names = { [0] = "controller", [1] = "host" } },
    },
    messages = {
      [1] = {
        name = "prepare",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [2] = {
        name = "ready",
        len = function(u, n) return 64 end,
        fields = {
          { "held", 7, 1, "uint" },
          { "next", 32, 8, "uint" },
        },
      },
      [3] = {
        name = "commit",
        len = function(u, n) return 64 end,
        fields = {
          { "grant_from", 32, 8, "uint" },
          { "grant_to", 40, 8, "uint" },
        },
      },
      [4] = {
        name = "abort",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [5] = {
        name = "settled",
        len = function(u, n) return 64 end,
        fields = {
          { "held", 7, 1, "uint" },
          { "next", 32, 8, "uint" },
          { "heard_epoch", 48, 8, "uint" },
        },
      },
      [6] = {
        name = "ask",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [7] = {
        name = "in_doubt",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [8] = {
        name = "bye",
        len = function(u, n) return 64 end,
        fields = {
        },
      },
      [9] = {
        name = "progress",
        len = function(u, n) return 64 end,
        fields = {
          { "in_network", 7, 1, "uint" },
          { "next", 32, 8, "uint" },
          { "step_age_ns", 40, 8, "uint" },
        },
      },
    },
  },
  {
    name = "olaf_here", title = "MINA rehearsal",
    magic = "HERE",
    code = function(u, dscp) return 0 end,
    common = {
      { "job", 4, 8, "uint" },
      { "index", 12, 8, "uint" },
      { "rank", 20, 2, "uint" },
      { "in_network", 22, 1, "uint" },
      { "answer", 23, 1, "uint" },
    },
    messages = {
      [0] = {
        name = "here",
        len = function(u, n) return 24 end,
        fields = {
        },
      },
    },
  },
}

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
