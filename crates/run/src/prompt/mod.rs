//! Prompts: a template and plain values become the text that an agent is started with.
//!
//! Pure: knows no file, no other room and no model. What stands in the values (a person's words, an agent's, a
//! command's output) can't forge the marks of a block, and can't make the prompt longer than its limits.

pub use assigned::{
    Answered, Assigned, AssignedTask, ChildResult, EarlierAttempt, Learned, Planning, QueueState,
    Refutation, Remark, ReviewTask,
};
pub use limits::{PromptLimits, head, tail};
pub use template::{Template, TemplateError};

mod assigned;
mod limits;
mod marks;
mod template;

/// A prompt, and how many of the letters stand in it, the first ones.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub text: String,
    pub letters: usize,
}

/// The prompt for `assigned`: at most `limits.total` bytes, for which the oldest and longest of it is left out first,
/// with a mark where it was.
pub fn assigned(
    template: &Template,
    assigned: &Assigned,
    limits: &PromptLimits,
) -> Result<Prompt, TemplateError> {
    let mut shortest = usize::MAX;
    for step in limits.steps() {
        let (cut, letters) = step.cut(assigned);
        let text = template.render(&cut)?;
        if text.len() <= limits.total {
            return Ok(Prompt { text, letters });
        }
        shortest = shortest.min(text.len());
    }
    let message = format!(
        "the prompt has {shortest} bytes at least, and may have {}",
        limits.total
    );
    Err(TemplateError::whole(&template.name, message))
}

/// Checks `template`: it is filled in with everything that a task can have, and with nothing.
pub fn check(template: &Template) -> Result<(), TemplateError> {
    for sample in [Assigned::full_sample(), Assigned::default()] {
        assigned(template, &sample, &PromptLimits::default())?;
    }
    Ok(())
}

/// Checks that `template` is written as one: nothing of it is done, as of one that nobody has trusted.
pub fn check_written(template: &Template) -> Result<(), TemplateError> {
    template.parse()
}

#[cfg(test)]
mod tests;
