//! The agents of a drain: `4`, or `coder=3,reviewer=1`.

use std::str::FromStr;

use crate::human;

/// As typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crew {
    /// The number of agents of the one role.
    Count(u16),
    Posts(Vec<Post>),
}

/// A number of agents of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub role: String,
    pub agents: u16,
}

/// The maximal number of agents; more is probably a typo.
const MOST: u16 = 1000;

impl Crew {
    /// Returns the posts; a bare number is for `role`.
    pub fn of(&self, role: &str) -> Vec<Post> {
        match self {
            Crew::Count(agents) => vec![Post {
                role: role.to_owned(),
                agents: *agents,
            }],
            Crew::Posts(posts) => posts.clone(),
        }
    }
}

impl FromStr for Crew {
    type Err = String;

    fn from_str(text: &str) -> Result<Crew, String> {
        let count = |text: &str| {
            let agents = text
                .trim()
                .parse::<u16>()
                .ok()
                .filter(|agents| (1..=MOST).contains(agents));
            agents.ok_or_else(|| format!("`{text}` is not a number from 1 to {MOST}"))
        };
        if !text.contains('=') {
            return count(text).map(Crew::Count);
        }
        let mut posts: Vec<Post> = Vec::new();
        for part in text.split(',') {
            let (role, agents) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not ROLE=N"))?;
            let (role, agents) = (role.trim().to_owned(), count(agents)?);
            if posts.iter().any(|post| post.role == role) {
                return Err(format!("role `{role}` is given twice"));
            }
            posts.push(Post { role, agents });
        }
        Ok(Crew::Posts(posts))
    }
}

/// Describes the crew, when there are `open` items.
pub fn words(crew: &[Post], open: usize) -> String {
    let agents = |post: &Post| usize::from(post.agents).min(open);
    match crew {
        [one] => human::count(agents(one), "agent"),
        _ => crew
            .iter()
            .map(|post| human::count(agents(post), &post.role))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
