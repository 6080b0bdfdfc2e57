//! The rule by which a server changes its model, as a welcome tells it.

use crate::offsets::welcome;
use crate::packet::{Packet, Refusal, Writer};

/// Which rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RuleKind {
    /// `w += gamma * g` for every update, where g is what a worker's local training changed,
    /// divided by gamma. Learns.
    Delta = 1,
    /// OLAF §2.1 to the letter: only a reward above the best so far is accepted, and then
    /// `g_a = avg(g_a, g); w += gamma * g_a`. Freezes once the best is out of reach.
    PaperLiteral = 2,
}

/// When what was delivered changes the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AggregateKind {
    /// At once.
    Each = 1,
    /// Several contributions together, while their workers go on.
    Periodic = 2,
    /// One contribution of every worker together, for which all wait.
    Round = 3,
}

/// How far a merge of several contributions moves the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// By their mean.
    Mean = 1,
    /// By their mean times their weight, as if each had come alone.
    Sum = 2,
    /// By their mean times their number, scaled down by the contributions that none of them knew of.
    Overlap = 3,
}

/// Which updates the server takes, by their reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ServerGate {
    /// All.
    None = 1,
    /// Those not below the best reward so far by more than the margin.
    Best = 2,
    /// Those not below the recent mean by more than the margin.
    Recent = 3,
}

macro_rules! codes {
    ($type:ident { $($variant:ident: $name:literal),+ }) => {
        impl $type {
            fn from_byte(byte: u8) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|known| *known as u8 == byte)
            }

            /// Every value with its name.
            pub const NAMES: &'static [(&'static str, Self)] =
                &[$(($name, Self::$variant)),+];

            /// The name that configurations, statistics and `rule()` use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}

codes!(RuleKind { Delta: "delta", PaperLiteral: "paper-literal" });
codes!(AggregateKind { Each: "each", Periodic: "periodic", Round: "round" });
codes!(Step { Mean: "mean", Sum: "sum", Overlap: "overlap" });
codes!(ServerGate { None: "none", Best: "best", Recent: "recent" });

/// What a server does with a delivered update: what a push will do, in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobRule {
    /// Which rule.
    pub kind: RuleKind,
    /// When an update changes the model.
    pub aggregate: AggregateKind,
    /// How far a merge moves the model.
    pub step: Step,
    /// The gate.
    pub gate: ServerGate,
    /// The server multiplies every update by this number: its `learning_rate`. Above 0.
    pub factor: f64,
    /// It multiplies an update computed on a model `b` versions old by `(1 + b)^-power` besides. With
    /// [`Step::Overlap`] it counts contributions instead: `(n + m)^-power` for a merge of `n` where `m`
    /// others changed the model since.
    pub staleness_power: f64,
}

impl JobRule {
    /// Reads the rule of a welcome; `None` where its sender has none, as a switch.
    pub(crate) fn parse(packet: &Packet<'_>) -> Result<Option<Self>, Refusal> {
        let codes = [welcome::RULE, welcome::AGGREGATE, welcome::STEP, welcome::GATE];
        let factor = packet.f64(welcome::FACTOR);
        let staleness_power = packet.f64(welcome::STALENESS_POWER);
        if packet.byte(welcome::RULE) == 0 {
            let blank = codes.iter().all(|at| packet.byte(*at) == 0)
                && packet.u64(welcome::FACTOR) == 0
                && packet.u64(welcome::STALENESS_POWER) == 0;
            return if blank { Ok(None) } else { Err(Refusal::BadField("rule")) };
        }
        if !(factor.is_finite() && factor > 0.0) {
            return Err(Refusal::BadField("factor"));
        }
        if !(staleness_power.is_finite() && staleness_power >= 0.0) {
            return Err(Refusal::BadField("staleness_power"));
        }
        let [kind, aggregate, step, gate] = codes.map(|at| packet.byte(at));
        Ok(Some(Self {
            kind: RuleKind::from_byte(kind).ok_or(Refusal::BadField("rule"))?,
            aggregate: AggregateKind::from_byte(aggregate).ok_or(Refusal::BadField("aggregate"))?,
            step: Step::from_byte(step).ok_or(Refusal::BadField("step"))?,
            gate: ServerGate::from_byte(gate).ok_or(Refusal::BadField("gate"))?,
            factor,
            staleness_power,
        }))
    }

    pub(crate) fn put(&self, writer: &mut Writer<'_>) {
        writer.put(welcome::RULE, [self.kind as u8]);
        writer.put(welcome::AGGREGATE, [self.aggregate as u8]);
        writer.put(welcome::STEP, [self.step as u8]);
        writer.put(welcome::GATE, [self.gate as u8]);
        writer.put(welcome::FACTOR, self.factor.to_be_bytes());
        writer.put(welcome::STALENESS_POWER, self.staleness_power.to_be_bytes());
    }
}
