//! What the page is made of. It holds nothing of the board, and is in the program.

/// A file of the page.
pub struct Asset {
    pub path: &'static str,
    pub kind: &'static str,
    pub text: &'static str,
}

/// The page itself comes first.
pub const ASSETS: [Asset; 5] = [
    Asset {
        path: "/",
        kind: "text/html; charset=utf-8",
        text: include_str!("../../templates/serve/page.html"),
    },
    Asset {
        path: "/style.css",
        kind: "text/css; charset=utf-8",
        // What the page of `tavern report-html` looks like.
        text: include_str!("../../templates/html/style.css"),
    },
    Asset {
        path: "/serve.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../../templates/serve/serve.css"),
    },
    Asset {
        path: "/page.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../templates/serve/page.js"),
    },
    Asset {
        path: "/icon.svg",
        kind: "image/svg+xml",
        text: include_str!("../../templates/serve/icon.svg"),
    },
];
