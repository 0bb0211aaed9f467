//! Shapes of tokens of known services, as these document them, and as scanners such as gitleaks and secretlint use
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::shape::{is_body, is_random};
use super::text::{Text, is_base64, is_capital, is_hex, is_plain, is_word};

/// Tokens of a service with a common beginning.
pub(super) struct Token {
    begins: &'static str,
    pub(super) name: &'static str,
    /// The letters of the rest, and their number.
    rest: Rest,
}

enum Rest {
    AtLeast(fn(u8) -> bool, usize),
    Exactly(fn(u8) -> bool, usize),
    /// Returns the end, if it is a token, given the beginning of the rest.
    Other(fn(&Text<'_>, usize) -> Option<usize>),
}

use Rest::{AtLeast, Exactly, Other};

const fn token(begins: &'static str, name: &'static str, rest: Rest) -> Token {
    Token { begins, name, rest }
}

/// Sorted by their beginnings; of two that share one, the longer comes first.
#[rustfmt::skip]
const TOKENS: &[Token] = &[
    token("-----BEGIN ", "private key", Other(private_key)),
    token("1//0", "Google token", AtLeast(is_word, 40)),
    token("AGE-SECRET-KEY-1", "age key", AtLeast(is_capital, 50)),
    token("AIza", "Google key", AtLeast(is_word, 35)),
    token("AKCp", "JFrog key", AtLeast(is_plain, 60)),
    token("AKIA", "AWS key", Other(aws_key)),
    token("ASIA", "AWS key", Other(aws_key)),
    token("ATATT3", "Atlassian token", AtLeast(is_base64_word, 60)),
    token("ATCTT3", "Atlassian token", AtLeast(is_base64_word, 60)),
    token("CFPAT-", "Contentful token", AtLeast(is_word, 40)),
    token("EAA", "Facebook token", AtLeast(is_plain, 100)),
    token("GOCSPX-", "Google secret", AtLeast(is_word, 28)),
    token("GR1348941", "GitLab token", AtLeast(is_word, 20)),
    token("LS0tLS1CRUdJTi", "private key", Other(private_key_in_base64)),
    token("LTAI", "Alibaba key", Exactly(is_plain, 20)),
    token("NRAK-", "New Relic key", Exactly(is_capital, 27)),
    token("PMAK-", "Postman key", AtLeast(is_word, 50)),
    token("SG.", "SendGrid key", AtLeast(is_dotted, 60)),
    token("SK", "Twilio key", Exactly(is_hex, 32)),
    token("api_org_", "Hugging Face token", AtLeast(is_plain, 30)),
    token("bkua_", "Buildkite token", AtLeast(is_plain, 40)),
    token("cio", "crates.io token", Exactly(is_plain, 32)),
    token("dapi", "Databricks token", Exactly(is_hex, 32)),
    token("dckr_oat_", "Docker token", AtLeast(is_word, 27)),
    token("dckr_pat_", "Docker token", AtLeast(is_word, 27)),
    token("discord.com/api/webhooks/", "Discord webhook", AtLeast(is_address, 60)),
    token("discordapp.com/api/webhooks/", "Discord webhook", AtLeast(is_address, 60)),
    token("doo_v1_", "DigitalOcean token", AtLeast(is_hex, 64)),
    token("dop_v1_", "DigitalOcean token", AtLeast(is_hex, 64)),
    token("dor_v1_", "DigitalOcean token", AtLeast(is_hex, 64)),
    token("dp.pt.", "Doppler token", AtLeast(is_plain, 40)),
    token("dp.st.", "Doppler token", AtLeast(is_dotted, 40)),
    token("eyJ", "JSON web token", Other(web_token)),
    token("figd_", "Figma token", AtLeast(is_word, 40)),
    token("gho_", "GitHub token", AtLeast(is_plain, 30)),
    token("ghp_", "GitHub token", AtLeast(is_plain, 30)),
    token("ghr_", "GitHub token", AtLeast(is_plain, 30)),
    token("ghs_", "GitHub token", AtLeast(is_plain, 30)),
    token("ghu_", "GitHub token", AtLeast(is_plain, 30)),
    token("github_pat_", "GitHub token", AtLeast(is_word, 30)),
    token("glagent-", "GitLab token", AtLeast(is_word, 50)),
    token("glc_", "Grafana token", AtLeast(is_base64, 32)),
    token("glcbt-", "GitLab token", AtLeast(is_word, 20)),
    token("gldt-", "GitLab token", AtLeast(is_word, 20)),
    token("glffct-", "GitLab token", AtLeast(is_word, 20)),
    token("glft-", "GitLab token", AtLeast(is_word, 20)),
    token("glimt-", "GitLab token", AtLeast(is_word, 25)),
    token("gloas-", "GitLab token", AtLeast(is_hex, 64)),
    token("glpat-", "GitLab token", AtLeast(is_dotted, 20)),
    token("glptt-", "GitLab token", AtLeast(is_hex, 40)),
    token("glrt-", "GitLab token", AtLeast(is_dotted, 20)),
    token("glrtr-", "GitLab token", AtLeast(is_dotted, 20)),
    token("glsa_", "Grafana token", AtLeast(is_word, 41)),
    token("glsoat-", "GitLab token", AtLeast(is_word, 20)),
    token("gsk_", "Groq key", AtLeast(is_plain, 50)),
    token("hf_", "Hugging Face token", AtLeast(is_plain, 30)),
    token("hooks.slack.com/services/", "Slack webhook", AtLeast(is_address, 40)),
    token("hooks.slack.com/triggers/", "Slack webhook", AtLeast(is_address, 40)),
    token("hooks.slack.com/workflows/", "Slack webhook", AtLeast(is_address, 40)),
    token("hvb.", "Vault token", AtLeast(is_word, 24)),
    token("hvs.", "Vault token", AtLeast(is_word, 24)),
    token("key-", "Mailgun key", Exactly(is_hex, 32)),
    token("lin_api_", "Linear key", AtLeast(is_plain, 40)),
    token("lsv2_pt_", "LangSmith key", AtLeast(is_word, 40)),
    token("lsv2_sk_", "LangSmith key", AtLeast(is_word, 40)),
    token("npm_", "npm token", AtLeast(is_plain, 36)),
    token("ntn_", "Notion token", AtLeast(is_plain, 40)),
    token("oy2", "NuGet key", Exactly(is_plain, 43)),
    token("pplx-", "Perplexity key", AtLeast(is_plain, 40)),
    token("pscale_", "PlanetScale token", AtLeast(is_dotted, 36)),
    token("pul-", "Pulumi token", Exactly(is_hex, 40)),
    token("pypi-AgE", "PyPI token", AtLeast(is_word, 50)),
    token("r8_", "Replicate token", AtLeast(is_plain, 37)),
    token("rk_live_", "Stripe key", AtLeast(is_plain, 20)),
    token("rk_prod_", "Stripe key", AtLeast(is_plain, 20)),
    token("rk_test_", "Stripe key", AtLeast(is_plain, 20)),
    token("rubygems_", "RubyGems key", Exactly(is_hex, 48)),
    token("sbp_", "Supabase token", AtLeast(is_hex, 40)),
    token("shpat_", "Shopify token", Exactly(is_hex, 32)),
    token("shpca_", "Shopify token", Exactly(is_hex, 32)),
    token("shppa_", "Shopify token", Exactly(is_hex, 32)),
    token("shpss_", "Shopify token", Exactly(is_hex, 32)),
    token("sk-admin-", "OpenAI key", AtLeast(is_word, 20)),
    token("sk-ant-", "Anthropic key", AtLeast(is_word, 20)),
    token("sk-or-v1-", "OpenRouter key", AtLeast(is_word, 32)),
    token("sk-proj-", "OpenAI key", AtLeast(is_word, 20)),
    token("sk-svcacct-", "OpenAI key", AtLeast(is_word, 20)),
    token("sk-", "OpenAI key", AtLeast(is_plain, 40)),
    token("sk_live_", "Stripe key", AtLeast(is_plain, 20)),
    token("sk_prod_", "Stripe key", AtLeast(is_plain, 20)),
    token("sk_test_", "Stripe key", AtLeast(is_plain, 20)),
    token("sntrys_", "Sentry token", AtLeast(is_base64_word, 60)),
    token("sntryu_", "Sentry token", AtLeast(is_hex, 64)),
    token("sq0atp-", "Square token", AtLeast(is_word, 22)),
    token("sq0csp-", "Square secret", AtLeast(is_word, 40)),
    token("sqa_", "SonarQube token", Exactly(is_hex, 40)),
    token("sqp_", "SonarQube token", Exactly(is_hex, 40)),
    token("squ_", "SonarQube token", Exactly(is_hex, 40)),
    token("tskey-", "Tailscale key", AtLeast(is_word, 30)),
    token("webhook.office.com/webhookb2/", "Teams webhook", AtLeast(is_address, 60)),
    token("whsec_", "webhook secret", AtLeast(is_base64, 24)),
    token("xai-", "xAI key", AtLeast(is_plain, 60)),
    token("xapp-", "Slack token", AtLeast(is_word, 20)),
    token("xkeysib-", "Brevo key", AtLeast(is_word, 64)),
    token("xoxa-", "Slack token", AtLeast(is_word, 10)),
    token("xoxb-", "Slack token", AtLeast(is_word, 10)),
    token("xoxe-", "Slack token", AtLeast(is_word, 20)),
    token("xoxe.", "Slack token", AtLeast(is_word, 20)),
    token("xoxp-", "Slack token", AtLeast(is_word, 10)),
    token("xoxr-", "Slack token", AtLeast(is_word, 10)),
    token("xoxs-", "Slack token", AtLeast(is_word, 10)),
    token("ya29.", "Google token", AtLeast(is_dotted, 30)),
];

/// The index in `TOKENS`, which is sorted, of the first entry for each byte.
const FIRST: [u8; 129] = {
    let (mut first, mut byte) = ([0; 129], 0);
    while byte < 128 {
        let mut at = first[byte] as usize;
        while at < TOKENS.len() && TOKENS[at].begins.as_bytes()[0] as usize <= byte {
            at += 1;
        }
        byte += 1;
        first[byte] = at as u8;
    }
    first
};

/// Returns the beginning, the end and the name of the secret in the token at `at`: a URL is kept except for its secret
/// part.
pub(super) fn token_at(text: &Text<'_>, at: usize) -> Option<(usize, usize, &'static str)> {
    let first = usize::from(text.get(at)?);
    let (from, to) = (*FIRST.get(first)?, *FIRST.get(first + 1)?);
    let found = TOKENS[usize::from(from)..usize::from(to)]
        .iter()
        .find_map(|token| {
            let rest = at + token.begins.len();
            let end = text
                .has(at, token.begins)
                .then(|| token.end(text, rest))
                .flatten()?;
            let begin = if token.begins.contains('/') && !token.begins.starts_with('1') {
                rest
            } else {
                at
            };
            Some((begin, end, token.name))
        });
    found.or_else(|| without_beginning(text, at))
}

impl Token {
    fn end(&self, text: &Text<'_>, rest: usize) -> Option<usize> {
        let (end, fits) = match self.rest {
            Other(end) => return end(text, rest),
            AtLeast(is_part, least) => {
                let end = text.sentence(rest, is_part as usize, is_part);
                (end, end - rest >= least)
            }
            Exactly(is_part, count) => {
                let end = text.run(rest, is_part);
                (
                    end,
                    end - rest == count && !text.get(end).is_some_and(is_word),
                )
            }
        };
        // Not a token: `xoxb-your-token-here`.
        let body = &text.bytes()[rest..end.min(rest + 256)];
        (fits && is_body(body)).then_some(end)
    }
}

fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

fn is_base64_word(byte: u8) -> bool {
    is_base64(byte) || is_word(byte)
}

fn is_address(byte: u8) -> bool {
    is_dotted(byte) || matches!(byte, b'/' | b'@')
}

/// Matches a key's identifier, and the key itself if it follows.
fn aws_key(text: &Text<'_>, rest: usize) -> Option<usize> {
    let end = text.run(rest, is_capital);
    if end - rest != 16 || text.get(end).is_some_and(is_word) {
        return None;
    }
    let beside = text.run(end, |byte| matches!(byte, b',' | b':' | b' ' | b'\t'));
    let key = text.run(beside, is_base64);
    let is_key = beside > end && key - beside == 40 && is_random(&text.bytes()[beside..key]);
    Some(
        if is_key && text.bytes()[beside..key].iter().any(u8::is_ascii_uppercase) {
            key
        } else {
            end
        },
    )
}

/// Matches three parts, of which the first two are JSON.
fn web_token(text: &Text<'_>, rest: usize) -> Option<usize> {
    let first = text.run(rest, is_word);
    if first - rest < 10 || !text.has(first, ".eyJ") {
        return None;
    }
    let end = text.sentence(rest, 1, is_dotted);
    let has_three = text.bytes()[rest..end]
        .split(|byte| *byte == b'.')
        .nth(2)
        .is_some();
    has_three.then_some(end)
}

fn private_key_in_base64(text: &Text<'_>, rest: usize) -> Option<usize> {
    let begin = rest - "LS0tLS1CRUdJTi".len();
    let end = text.run(rest, is_base64);
    let head = &text.bytes()[begin..end.min(begin + 64)];
    let head = STANDARD_NO_PAD.decode(&head[..head.len() / 4 * 4]).ok()?;
    let is_private = head
        .windows(LABEL.len())
        .any(|part| part == LABEL.as_bytes());
    is_private.then(|| text.run(end, |byte| byte == b'='))
}

const LABEL: &str = "PRIVATE KEY";

/// Matches a PEM block up to its last line, or as far as it goes. It may have its own lines, each with the first line's
/// prefix, or be in a JSON string.
fn private_key(text: &Text<'_>, rest: usize) -> Option<usize> {
    const END: &str = "-----END ";
    let is_label = |byte: u8| is_capital(byte) || byte == b' ';
    let label = text.run(rest, is_label);
    let name = text.bytes()[rest..label]
        .strip_suffix(b" BLOCK")
        .unwrap_or(&text.bytes()[rest..label]);
    if !name.ends_with(LABEL.as_bytes()) || !text.has(label, "-----") {
        return None;
    }
    // PGP headers name the program that made it, and its origin.
    let has_prose = name.starts_with(b"PGP");
    let margin = text.margin(rest - "-----BEGIN ".len());
    let mut end = label + "-----".len();
    loop {
        if text.has(end, END) {
            let last = text.run(end + END.len(), is_label);
            return Some(text.run(last, |byte| byte == b'-'));
        }
        let slashes = text.run(end, |byte| byte == b'\\') - end;
        let Some(next) = text.get(end + slashes) else {
            return Some(end + slashes);
        };
        let is_escape = slashes > 0 && matches!(next, b'n' | b'r' | b't');
        let is_text =
            is_word(next) || b"+/=:, \n\r\t".contains(&next) || has_prose && b".()".contains(&next);
        if slashes > 0 && !is_escape || !is_text {
            return Some(end);
        }
        end += slashes + 1;
        if (next == b'\n' || is_escape && next == b'n')
            && !margin.is_empty()
            && text.has(end, margin)
        {
            end += margin.len();
        }
    }
}

/// Matches tokens that are recognised only by their parts.
fn without_beginning(text: &Text<'_>, at: usize) -> Option<(usize, usize, &'static str)> {
    let word = text.run(at, is_word);
    let (bytes, length) = (&text.bytes()[at..word], word - at);
    let part = |from: usize| text.run(from, is_word);
    match text.get(word) {
        Some(b':') => {
            let number = bytes.strip_prefix(b"bot").unwrap_or(bytes);
            let is_number =
                (8..=10).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
            let end = is_number.then(|| part(word + 1))?;
            (text.has(word + 1, "AA") && end - word == 36).then_some((
                word - number.len(),
                end,
                "Telegram token",
            ))
        }
        Some(b'.') if length == 14 && text.has(word, ".atlasv1.") => {
            let end = part(word + ".atlasv1.".len());
            (end - word > 60).then_some((at, end, "Terraform token"))
        }
        Some(b'.') if (24..=28).contains(&length) && matches!(bytes[0], b'M' | b'N' | b'O') => {
            let middle = part(word + 1);
            let end = part(middle + 1);
            let fits = middle - word == 7
                && text.get(middle) == Some(b'.')
                && (27..=38).contains(&(end - middle - 1));
            fits.then_some((at, end, "Discord token"))
        }
        Some(b'~') if length == 5 && bytes[3].is_ascii_digit() && bytes[4] == b'Q' => {
            let end = text.run(word, |byte| is_word(byte) || matches!(byte, b'~' | b'.'));
            (35..=40)
                .contains(&(end - at))
                .then_some((at, end, "Azure secret"))
        }
        _ => {
            let (hex, region) = bytes.split_at_checked(32)?;
            let number = region.strip_prefix(b"-us")?;
            let is_key = hex.iter().all(|byte| is_hex(*byte))
                && (1..=2).contains(&number.len())
                && number.iter().all(u8::is_ascii_digit);
            is_key.then_some((at, word, "Mailchimp key"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_in_the_order_of_what_they_begin_with() {
        for pair in TOKENS.windows(2) {
            let [one, next] = [pair[0].begins, pair[1].begins];
            assert!(one.starts_with(next) || one < next, "{one} {next}");
        }
        assert!(TOKENS.len() < 255 && usize::from(FIRST[128]) == TOKENS.len());
    }
}
