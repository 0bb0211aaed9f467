//! The files of the page, which are part of the program. They hold no data of the board.

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
        // The style is that of the page of `tavern report-html`.
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
