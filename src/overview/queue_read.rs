//! The queues, each read and parsed once for all output.

use tavern_core::document::Document;
use tavern_core::problem::Problem;
use tavern_store::{Board, Queue, Text};

/// A queue's text, read and parsed once.
pub struct QueueRead<'t> {
    pub text: &'t Text,
    pub document: Document<'t>,
    pub problems: Vec<Problem>,
}

impl<'t> QueueRead<'t> {
    /// Returns the texts of the `queues` that can be read.
    pub fn texts(board: &Board, queues: &[Queue]) -> Vec<Text> {
        let read = |queue| board.read(queue).ok();
        queues.iter().filter_map(read).collect()
    }

    /// Parses the texts, in their order.
    pub fn all(texts: &'t [Text]) -> Vec<QueueRead<'t>> {
        let read = |text: &'t Text| {
            let (document, problems) = text.content.parse();
            QueueRead {
                text,
                document,
                problems,
            }
        };
        texts.iter().map(read).collect()
    }
}
