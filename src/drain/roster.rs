//! The agents of a drain: `4`, or `coder=3,reviewer=1,all=2`.

use std::str::FromStr;

use crate::format;

/// As typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crew {
    /// The number of agents of the one role.
    Count(u16),
    Posts {
        posts: Vec<Post>,
        /// The number of agents of all roles at once.
        all: Option<u16>,
    },
}

/// A number of agents of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    pub role: String,
    pub agents: u16,
}

/// The maximal number of agents; more is probably a typo.
const MOST: u16 = 1000;

/// Takes the place of a role for the number of agents at once.
const ALL: &str = "all";

impl Crew {
    /// Returns the posts; a bare number is for `role`.
    pub fn of(&self, role: &str) -> Vec<Post> {
        match self {
            Crew::Count(agents) => vec![Post {
                role: role.to_owned(),
                agents: *agents,
            }],
            Crew::Posts { posts, .. } => posts.clone(),
        }
    }

    /// Returns the number of agents at once, if it is less than the sum of the posts.
    pub fn at_once(&self) -> Option<usize> {
        match self {
            Crew::Count(_) => None,
            Crew::Posts { all, .. } => all.map(usize::from),
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
        let (mut posts, mut all) = (Vec::<Post>::new(), None);
        for part in text.split(',') {
            let (role, agents) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not ROLE=N"))?;
            let (role, agents) = (role.trim().to_owned(), count(agents)?);
            let is_all = role == ALL;
            if posts.iter().any(|post| post.role == role) || is_all && all.is_some() {
                return Err(format!("`{role}` is given twice"));
            }
            if is_all {
                all = Some(agents);
            } else {
                posts.push(Post { role, agents });
            }
        }
        if posts.is_empty() {
            return Err(format!("it names no role: `coder=3,{ALL}=2`"));
        }
        Ok(Crew::Posts { posts, all })
    }
}

/// Describes the crew, when there are `open` items.
pub fn words(crew: &[Post], open: usize) -> String {
    let agents = |post: &Post| usize::from(post.agents).min(open);
    match crew {
        [one] => format::count(agents(one), "agent"),
        _ => crew
            .iter()
            .map(|post| format::count(agents(post), &post.role))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
