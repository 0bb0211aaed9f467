//! Positions of times on a chart. Long idle times take little room.

use tavern_core::task::Timestamp;
use tavern_sys::clock;

/// Positions of times on a chart.
#[derive(Debug)]
pub(super) struct TimeScale {
    pieces: Vec<Stretched>,
}

/// A time that is drawn whole, in seconds since the epoch, and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretched {
    from: i64,
    to: i64,
    x: f64,
    width: f64,
}

/// A labelled time beneath a chart.
#[derive(Debug, PartialEq)]
pub(super) struct Tick {
    pub x: u32,
    pub label: String,
}

/// Width of an idle time on the chart.
const GAP: f64 = 26.0;

/// Shortest idle time that is left out, in seconds.
const LEAST_GAP: i64 = 600;

/// Width of a label with its margin.
const LABEL: f64 = 84.0;

/// Seconds between two labels.
const STEPS: [i64; 14] = [
    10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 604_800, 2_592_000,
];

impl TimeScale {
    /// Returns the scale of these times, from `x` on.
    pub fn over(
        times: impl Iterator<Item = (Timestamp, Timestamp)>,
        x: f64,
        width: f64,
    ) -> TimeScale {
        let mut times: Vec<(i64, i64)> = times
            .map(|(from, to)| (from.timestamp(), to.timestamp()))
            .collect();
        times.sort_unstable();
        let busy: i64 = times
            .iter()
            .map(|(from, to)| to - from)
            .sum::<i64>()
            .min(span(&times));
        let longest = (busy / 8).max(LEAST_GAP);
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (from, to) in times {
            match merged.last_mut() {
                Some(last) if from - last.1 < longest => last.1 = last.1.max(to),
                _ => merged.push((from, to.max(from + 1))),
            }
        }
        let total: i64 = merged
            .iter()
            .map(|(from, to)| to - from)
            .sum::<i64>()
            .max(1);
        let gaps = merged.len().saturating_sub(1) as f64;
        // Gaps are narrower if there are very many.
        let gap = GAP.min(width / 3.0 / gaps.max(1.0));
        let scale = (width - gaps * gap) / total as f64;
        let mut at = x;
        let pieces = merged.into_iter().map(|(from, to)| {
            let piece = Stretched {
                from,
                to,
                x: at,
                width: (to - from) as f64 * scale,
            };
            at += piece.width + gap;
            piece
        });
        TimeScale {
            pieces: pieces.collect(),
        }
    }

    pub fn x(&self, at: Timestamp) -> f64 {
        let at = at.timestamp();
        let after = self.pieces.partition_point(|piece| piece.to < at);
        let Some(piece) = self.pieces.get(after).or(self.pieces.last()) else {
            return 0.0;
        };
        let part = (at - piece.from) as f64 / (piece.to - piece.from) as f64;
        piece.x + piece.width * part.clamp(0.0, 1.0)
    }

    /// Returns the middle of each gap, where times are left out.
    pub fn gaps(&self) -> Vec<u32> {
        let middle = |pair: &[Stretched]| f64::midpoint(pair[0].x + pair[0].width, pair[1].x);
        self.pieces
            .windows(2)
            .map(|pair| pixel(middle(pair)))
            .collect()
    }

    pub fn ticks(&self) -> Vec<Tick> {
        let (mut ticks, mut free) = (Vec::new(), f64::MIN);
        let mut day = String::new();
        let end = self
            .pieces
            .last()
            .map_or(0.0, |piece| piece.x + piece.width);
        for piece in &self.pieces {
            let per_second = piece.width / (piece.to - piece.from) as f64;
            let step = STEPS
                .into_iter()
                .find(|step| *step as f64 * per_second >= LABEL)
                .unwrap_or(i64::MAX / 4);
            let Some(first) = Timestamp::from_timestamp(piece.from, 0) else {
                continue;
            };
            let midnight = clock::day_began(first).timestamp();
            let next = midnight + ((piece.from - midnight) / step + 1) * step;
            let rounds = (next..)
                .step_by(usize::try_from(step).unwrap_or(usize::MAX))
                .take_while(|at| *at <= piece.to);
            for at in std::iter::once(piece.from).chain(rounds) {
                let x = piece.x + (at - piece.from) as f64 * per_second;
                let Some(moment) = Timestamp::from_timestamp(at, 0)
                    .filter(|_| x >= free && (x + LABEL <= end || ticks.is_empty()))
                else {
                    continue;
                };
                let (today, whole) = (clock::day_of(moment), clock::brief(moment));
                let label = if today == day {
                    whole[6..].to_owned()
                } else {
                    whole
                };
                day = today;
                ticks.push(Tick { x: pixel(x), label });
                free = x + LABEL;
            }
        }
        ticks
    }
}

fn span(times: &[(i64, i64)]) -> i64 {
    let (first, last) = (
        times.iter().map(|time| time.0).min(),
        times.iter().map(|time| time.1).max(),
    );
    last.zip(first).map_or(0, |(last, first)| last - first)
}

/// Rounds to whole pixels, which are sharp.
#[expect(clippy::cast_sign_loss, reason = "nothing stands left of the chart")]
pub(super) fn pixel(x: f64) -> u32 {
    x.round().max(0.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_timestamp(seconds, 0).expect("it is in range")
    }

    #[test]
    fn a_night_takes_little_room() {
        let times =
            [(0, 3_600), (3_600, 7_200), (86_400, 90_000)].map(|(from, to)| (at(from), at(to)));
        let scale = TimeScale::over(times.into_iter(), 100.0, 1_000.0);
        assert_eq!(scale.gaps().len(), 1);
        assert_eq!(
            [0, 7_200, 86_400, 90_000].map(|moment| pixel(scale.x(at(moment)))),
            [100, 749, 775, 1_100]
        );
        // Times in a gap stand at its end, and times beyond the scale at the end of that.
        assert_eq!(
            [50_000, 1_000_000].map(|moment| pixel(scale.x(at(moment)))),
            [775, 1_100]
        );
        let labels = scale.ticks();
        assert!(
            labels.len() > 3 && labels.windows(2).all(|pair| pair[1].x - pair[0].x >= 80),
            "{labels:?}"
        );
        assert!(labels[1].label.len() == 5, "{labels:?}");
    }

    #[test]
    fn nothing_and_a_moment_have_a_scale_too() {
        let none = TimeScale::over(std::iter::empty(), 0.0, 100.0);
        assert_eq!(
            (pixel(none.x(at(7))), none.ticks().len(), none.gaps().len()),
            (0, 0, 0)
        );
        let moment = TimeScale::over([(at(7), at(7))].into_iter(), 0.0, 100.0);
        assert_eq!((pixel(moment.x(at(7))), moment.ticks().len()), (0, 1));
    }
}
