//! Prompts: a template and plain values become the text that an agent is started with.
//!
//! Pure: knows no file, no other room and no model. Values (a person's words, an agent's, a command's output) can't
//! forge the marks of a block, nor exceed the prompt's limits.

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

/// A prompt, and how many letters it holds, from the first.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub text: String,
    pub letters: usize,
}

/// Returns the prompt for `assigned`, at most `limits.total` bytes. If it is too long, the oldest and longest parts
/// are left out, with a mark.
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

/// Checks `template` with all fields of a task set, and with none.
pub fn check(template: &Template) -> Result<(), TemplateError> {
    for sample in [Assigned::full_sample(), Assigned::default()] {
        assigned(template, &sample, &PromptLimits::default())?;
    }
    Ok(())
}

/// Checks the syntax of `template` without rendering it, as it may be untrusted.
pub fn check_written(template: &Template) -> Result<(), TemplateError> {
    template.parse()
}

#[cfg(test)]
mod tests;
