//! What agents and owners do to git, each kind by its name.

/// Whom a deed reaches, and what it needs.
pub enum Reach {
    /// Nothing but the worktree and its branch.
    Own,
    /// What all worktrees share.
    Shared,
    /// A submodule.
    Sub,
}
use Reach::{Own, Shared, Sub};

/// What an agent does: `{n}` is a number that no other deed has, and `made {n}` is a text that is looked for afterwards.
#[rustfmt::skip]
pub const DEEDS: &[(&str, Reach, &str)] = &[
    ("nothing", Own, "true"),
    ("write", Own, "echo 'made {n}' >new-{n}.txt"),
    ("write_deep", Own, "mkdir -p deep/{n}; echo 'made {n}' >'deep/{n}/a b ü.txt'"),
    ("append", Own, "echo 'made {n}' >>list.txt"),
    ("append_lock", Own, "echo 'made {n}' >>pkg.lock"),
    ("append_env", Own, "echo 'made {n}' >>.env"),
    ("change_env", Own, "if [ -e .env ]; then sed -i 's/$/ made {n}/' .env; else echo 'made {n}' >.env; fi"),
    ("move_env", Own, "mv .env env-{n} 2>/dev/null || echo 'made {n}' >env-{n}"),
    ("copy_generated", Own, "cp generated.txt gen-{n} 2>/dev/null || echo 'made {n}' >gen-{n}"),
    ("before_lock", Own, "if [ -e pkg.lock ]; then sed -i '1i made {n}' pkg.lock; else echo 'made {n}' >lock-{n}; fi"),
    ("change_lock", Own, "echo x >x-{n}; if [ -e pkg.lock ]; then sed -i 's/^lock/made {n}/' pkg.lock; fi"),
    ("move_lock", Own, "if [ -e pkg.lock ]; then mv pkg.lock lock-{n}; echo 'made {n}' >>lock-{n}; fi"),
    ("move_formatted", Own, "if [ -e src/a.rs ]; then git mv src/a.rs src/moved-{n}.rs; fi"),
    ("force_env", Own, "echo 'made {n}' >f-{n}; git add -f .env 2>/dev/null || true; git add f-{n}; git commit -qm Forced"),
    ("write_generated", Own, "echo 'made {n}' >>generated.txt"),
    ("write_in_crlf", Own, "printf 'made {n}\\r\\n' >>crlf.txt"),
    ("turn_line_ends", Own, "sed -i 's/$/\\r/' src/a.rs"),
    ("delete", Own, "rm -f src/b.rs; echo 'made {n}' >left-{n}"),
    ("delete_lock", Own, "rm -f pkg.lock"),
    ("rename", Own, "mv run.sh run-{n}.sh; mv run-{n}.sh ran-{n}.sh; cp ran-{n}.sh run.sh"),
    ("rename_by_git", Own, "if [ -e src/b.rs ]; then git mv src/b.rs src/b-{n}.rs; fi"),
    ("mode", Own, "chmod +x src/a.rs"),
    ("symlink", Own, "ln -s list.txt link-{n}"),
    ("dangling_link", Own, "ln -s ../none link-{n}"),
    ("file_to_link", Own, "rm -f text.flt; ln -s src text.flt"),
    ("file_to_folder", Own, "rm -rf link; mkdir link; echo 'made {n}' >link/{n}.txt"),
    ("move_folder", Own, "mv src moved-{n}; mkdir src; cp moved-{n}/* src"),
    ("filtered", Own, "echo 'a secret made {n}' >new-{n}.flt"),
    ("ignored", Own, "echo noise >noise.log; mkdir -p node_modules; echo x >node_modules/x"),
    ("force_ignored", Own, "echo 'made {n}' >kept-{n}.log; git add -f kept-{n}.log; git commit -qm Log"),
    ("more_ignored", Own, "echo '*.tmp' >>.gitignore; echo x >x.tmp"),
    ("ignore_secrets", Own, "echo .env >>.gitignore"),
    ("ignore_nothing", Own, "rm -f .gitignore; echo 'made {n}' >unignored"),
    ("attributes", Own, "echo '*.txt text eol=lf' >>.gitattributes; echo 'made {n}' >>list.txt"),
    ("commit_path", Own, "echo 'made {n}' >by-{n}; git add by-{n}; git commit -qm 'By {n}'"),
    ("commit_and_go_on", Own, "echo 'made {n}' >by-{n}; git add by-{n}; git commit -qm 'By {n}'; echo 'made {n}' >after-{n}"),
    ("commit_all", Own, "echo 'made {n}' >all-{n}; git add -A; git commit -qm 'All {n}'"),
    ("commit_tracked", Own, "echo 'made {n}' >>list.txt; git commit -qam 'Tracked {n}'"),
    ("stage_all", Own, "echo 'made {n}' >staged-{n}; git add -A"),
    ("stage_then_change", Own, "echo gone >staged-{n}; git add staged-{n}; echo 'made {n}' >staged-{n}"),
    ("restore", Own, "echo gone >>list.txt; git checkout -q -- list.txt"),
    ("reset_all", Own, "echo gone >>list.txt; git reset -q --hard"),
    ("clean", Own, "git clean -qfd; echo 'made {n}' >cleaned-{n}"),
    ("amend", Own, "echo 1 >am-{n}; git add am-{n}; git commit -qm Am; echo 'made {n}' >am-{n}; git commit -q --amend -m Amended am-{n}"),
    ("squash", Own, "for i in 1 2; do echo \"made {n} $i\" >sq-{n}-$i; git add sq-{n}-$i; git commit -qm Sq; done; git reset -q --soft HEAD~2; git commit -qm Squashed"),
    ("reset_own", Own, "echo gone >re-{n}; git add re-{n}; git commit -qm Re; git reset -q --hard HEAD~1; echo 'made {n}' >re2-{n}"),
    ("revert_own", Own, "echo gone >rv-{n}; git add rv-{n}; git commit -qm Rv; git stash list >/dev/null; git revert --no-edit HEAD >/dev/null"),
    ("empty_commit", Own, "git commit -q --allow-empty -m Empty"),
    ("other_branch", Own, "git checkout -qb other-{n}; echo 'made {n}' >other-{n}; git add other-{n}; git commit -qm Other"),
    ("detach", Own, "git checkout -q --detach; echo 'made {n}' >detached-{n}; git add detached-{n}; git commit -qm Detached"),
    ("merge_own", Own, "at=$(git symbolic-ref --short -q HEAD || git rev-parse HEAD); git checkout -qb side-{n}; echo 'made {n}' >side-{n}; git add side-{n}; git commit -qm Side; git checkout -q \"$at\"; git merge -q --no-ff -m Merge side-{n}"),
    ("side_left", Own, "at=$(git symbolic-ref --short -q HEAD || git rev-parse HEAD); git checkout -qb left-{n}; echo 'made {n}' >l-{n}; git add l-{n}; git commit -qm Left; git checkout -q \"$at\"; echo 'made {n}' >m-{n}"),
    ("nested", Own, "git init -q inner-{n}; cd inner-{n}; echo 'made {n}' >in; git add in; git commit -qm In; cd .."),
    ("nested_uncommitted", Own, "git init -q inner-{n}; echo 'made {n}' >inner-{n}/in"),
    ("nested_added", Own, "git init -q inner-{n}; cd inner-{n}; echo 'made {n}' >in; git add in; git commit -qm In; cd ..; git add inner-{n} 2>/dev/null; git commit -qm Inner"),
    ("worktree_inside", Own, "git worktree add -q -b helper-{n} helper-{n}; cd helper-{n}; echo 'made {n}' >help; git add help; git commit -qm Help; cd ..; echo 'made {n} too' >h-{n}"),
    ("worktree_inside_dirty", Own, "git worktree add -q -b helper-{n} helper-{n}; echo 'made {n}' >helper-{n}/help; echo x >h-{n}"),
    ("worktree_removed", Own, "git worktree add -q -b helper-{n} helper-{n}; cd helper-{n}; echo 'made {n}' >help; git add help; git commit -qm Help; cd ..; git worktree remove helper-{n}"),
    ("fail", Own, "echo 'made {n}' >failed-{n}; false"),
    ("untrack", Own, "if git rm -q --cached list.txt 2>/dev/null; then echo list.txt >>.gitignore; git add .gitignore; git commit -qm Untracked; fi; echo 'made {n}' >un-{n}"),
    ("sparse", Own, "git sparse-checkout set --no-cone src; echo 'made {n}' >src/sp-{n}; echo 'made {n} too' >sp-{n}"),
    ("skip_worktree", Own, "git update-index --skip-worktree list.txt; echo 'made {n}' >>list.txt; echo x >sk-{n}"),
    ("assume_unchanged", Own, "git update-index --assume-unchanged list.txt; echo 'made {n}' >>list.txt; echo x >as-{n}"),
    ("intent_to_add", Own, "echo 'made {n}' >it-{n}; git add -N it-{n}"),
    ("pipe", Own, "mkfifo pipe-{n}; echo 'made {n}' >pi-{n}"),
    ("locked", Own, "mkdir lo-{n}; echo 'made {n}' >lo-{n}/file; chmod 555 lo-{n}"),
    ("branch_deleted", Own, "at=$(git symbolic-ref --short -q HEAD || true); git checkout -q --detach; if [ \"$at\" ]; then git branch -qD \"$at\"; fi; echo 'made {n}' >bd-{n}; git add bd-{n}; git commit -qm Deleted"),
    ("branch_renamed", Own, "git checkout -qB tmp-{n}; git branch -m renamed-{n}; echo 'made {n}' >br-{n}"),
    ("own_branch_renamed", Own, "git branch -m renamed-{n}; echo 'made {n}' >br-{n}"),
    ("orphan", Own, "git checkout -q --orphan orphan-{n}; echo 'made {n}' >or-{n}; git add or-{n}; git commit -qm Orphan"),
    ("bisect_left", Own, "git bisect start >/dev/null; echo 'made {n}' >bi-{n}"),
    ("worktree_inside_detached", Own, "git worktree add -q --detach helper-{n}; cd helper-{n}; echo 'made {n}' >help; git add help; git commit -qm Help; cd ..; echo x >h-{n}"),
    ("worktree_beside", Own, "git worktree add -q -b beside-{n} ../beside-{n}; cd ../beside-{n}; echo 'made {n}' >help; git add help; git commit -qm Help; cd - >/dev/null; echo x >h-{n}"),
    ("cloned", Own, "git clone -q . clone-{n} 2>/dev/null; cd clone-{n}; echo 'made {n}' >cl; git add cl; git commit -qm Cloned; cd ..; echo x >h-{n}"),
    ("revert_before", Own, "git revert --no-edit -m 1 HEAD >/dev/null 2>&1 || true; echo 'made {n}' >re-{n}"),
    ("rebase_main", Own, "echo 'made {n}' >rb-{n}; git add rb-{n}; git commit -qm Rebased; git rebase -q --autostash main >/dev/null 2>&1 || git rebase --abort"),
    ("merge_main", Own, "echo 'made {n}' >mm-{n}; git merge -q --no-edit main >/dev/null 2>&1 || git merge --abort"),
    ("git_file_deleted", Own, "echo 'made {n}' >gf-{n}; rm -f .git"),
    ("sub_added", Sub, "git -c protocol.file.allow=always submodule --quiet add \"$HOME/sub\" more-{n}; echo 'made {n}' >sa-{n}"),
    ("sub_deinit", Sub, "{update}; git submodule --quiet deinit -f sub; echo 'made {n}' >sd-{n}"),
    ("sub_moved", Sub, "{update}; git mv sub moved-sub-{n}; git commit -qm Moved; echo 'made {n}' >sm-{n}"),
    ("tag_deleted", Shared, "git tag -d v2 >/dev/null 2>&1 || true; echo 'made {n}' >td-{n}"),
    ("topic_deleted", Shared, "git branch -qD topic 2>/dev/null || true; echo 'made {n}' >tp-{n}"),
    ("topic_moved", Shared, "git branch -qf topic HEAD; echo 'made {n}' >tm-{n}"),
    ("main_moved", Shared, "echo 'made {n}' >ma-{n}; git add ma-{n}; git commit -qm Main; git update-ref refs/heads/main HEAD"),
    ("sub_update", Sub, "{update}"),
    ("sub_commit", Sub, "{update}; cd sub; echo 'made {n}' >s-{n}; git add s-{n}; git commit -qm 'Sub {n}'; cd .."),
    ("sub_commit_linked", Sub, "{update}; cd sub; echo 'made {n}' >s-{n}; git add s-{n}; git commit -qm 'Sub {n}'; cd ..; git add sub; git commit -qm 'Link {n}'"),
    ("sub_pushed", Sub, "{update}; cd sub; echo 'made {n}' >s-{n}; git add s-{n}; git commit -qm 'Sub {n}'; git push -q origin HEAD:refs/heads/by-{n}; cd .."),
    ("sub_changed", Sub, "{update}; echo 'made {n}' >>sub/in-sub; echo 'made {n} too' >sub/more-{n}; echo x >beside-{n}"),
    ("sub_removed", Sub, "git rm -qrf sub; echo 'made {n}' >instead-{n}"),
    ("stash_and_pop", Shared, "echo 'made {n}' >st-{n}; git stash push -qu; git stash pop -q"),
    ("stash_tracked_and_pop", Shared, "echo 'made {n}' >>list.txt; git stash push -q; git stash pop -q"),
    ("stash_left", Shared, "echo 'made {n}' >st-{n}; git stash push -qu; echo 'made {n} too' >st2-{n}"),
    ("stash_and_drop", Shared, "echo gone >st-{n}; git stash push -qu; git stash drop -q; echo 'made {n}' >st2-{n}"),
    ("stash_take", Shared, "git reset -q --hard; if [ -n \"$(git stash list)\" ]; then git stash pop -q; fi; echo 'made {n}' >st-{n}"),
    ("stash_clear", Shared, "git stash clear; echo 'made {n}' >st-{n}"),
    ("tag", Shared, "echo 'made {n}' >t-{n}; git add t-{n}; git commit -qm Tagged; git tag by-{n}"),
    ("tag_moved", Shared, "git tag -f v1 HEAD >/dev/null 2>&1; echo 'made {n}' >t-{n}"),
    ("note", Shared, "echo 'made {n}' >n-{n}; git notes add -f -m 'note {n}' HEAD 2>/dev/null"),
    ("branch", Shared, "git branch branch-{n}; echo 'made {n}' >b-{n}"),
    ("update_ref", Shared, "git update-ref refs/custom/{n} HEAD; echo 'made {n}' >u-{n}"),
    ("hook", Shared, "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p $h; printf '#!/bin/sh\\necho hook >>\"$HOME/hooked\"\\nexit 1\\n' >$h/pre-merge-commit; chmod +x $h/pre-merge-commit; echo 'made {n}' >k-{n}"),
    ("exclude", Shared, "echo '*.tmp' >>$(git rev-parse --git-common-dir)/info/exclude; echo x >y.tmp; echo 'made {n}' >x-{n}"),
    ("configure", Shared, "git config user.name Agent; echo 'made {n}' >c-{n}; git add c-{n}; git commit -qm Configured"),
    ("configure_line_ends", Shared, "git config core.autocrlf input; printf 'made {n}\\r\\n' >c-{n}.txt"),
    ("configure_modes", Shared, "git config core.fileMode false; echo 'made {n}' >c-{n}; chmod +x c-{n}"),
    ("configure_hooks", Shared, "git config core.hooksPath .hooks; echo 'made {n}' >c-{n}"),
    ("gc", Shared, "echo 'made {n}' >g-{n}; git add g-{n}; git commit -qm Packed; git gc -q --prune=now"),
    ("expire", Shared, "echo 'made {n}' >g-{n}; git reflog expire --expire=now --all; git gc -q --prune=now"),
    ("worktree_prune", Shared, "git worktree prune; echo 'made {n}' >g-{n}"),
];

/// How a submodule is fetched.
pub const UPDATE: &str = "git -c protocol.file.allow=always submodule --quiet update --init";

/// What a repository has; those of the second kind are the owner's own, after the commits.
#[rustfmt::skip]
pub const PARTS: &[(&str, bool, &str)] = &[
    ("ignore", false, "printf 'node_modules/\\n*.log\\n' >.gitignore"),
    ("text_auto", false, "echo '* text=auto' >>.gitattributes"),
    ("eol_crlf", false, "echo '*.txt text eol=crlf' >>.gitattributes"),
    ("filter", false, "echo '*.flt filter=hide' >>.gitattributes; git config filter.hide.clean 'sed s/secret/hidden/'; git config filter.hide.smudge 'sed s/hidden/secret/'"),
    ("autocrlf", false, "git config core.autocrlf true"),
    ("submodule", false, "git init -q --initial-branch=main \"$HOME/sub\"; (cd \"$HOME/sub\"; echo sub >in-sub; git add in-sub; git commit -qm Sub); git -c protocol.file.allow=always submodule --quiet add \"$HOME/sub\" sub; git config protocol.file.allow always"),
    ("hide_untracked", true, "git config status.showUntrackedFiles no"),
    ("loud", true, "git config color.ui always; git config core.abbrev 40; git config diff.noprefix true; git config log.decorate full; git config format.pretty fuller; git config log.showSignature true"),
    ("encoding", true, "git config i18n.commitEncoding ISO-8859-1"),
    ("merging", true, "git config merge.ff only; git config merge.conflictStyle diff3; git config pull.rebase true; git config rerere.enabled true"),
    ("packing", true, "git config gc.auto 1; git config gc.autoDetach false"),
    ("ignore_submodules", true, "git config diff.ignoreSubmodules all"),
    ("all_logs", true, "git config core.logAllRefUpdates always"),
    ("stash", true, "echo stashed >>list.txt; echo owned >owned.txt; git stash push -qu"),
    ("tag", true, "git tag v1 HEAD~1; git tag -am Two v2"),
    ("branch", true, "git update-ref refs/heads/topic $(git commit-tree -m Topic -p HEAD~1 HEAD^{tree})"),
    ("note", true, "git notes add -m Noted HEAD"),
    ("hook", true, "mkdir -p .git/hooks; printf '#!/bin/sh\\necho ran >>\"$HOME/ran\"\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit"),
    ("user", true, "git config user.name Owner; git config user.email owner@example.org"),
    ("env", true, "echo KEY=of-the-owner >.env"),
    ("modules", true, "mkdir -p node_modules/one; echo one >node_modules/one/index.js"),
    ("modules_link", true, "mkdir -p \"$HOME/modules/one\"; echo one >\"$HOME/modules/one/index.js\"; ln -sn \"$HOME/modules\" node_modules"),
    ("changed", true, "echo mine >>src/a.rs; echo mine >mine.txt"),
    ("staged", true, "echo staged >>list.txt; git add list.txt"),
];

/// What `worktree.setup` does.
#[rustfmt::skip]
pub const SET_UP: &[(&str, &str)] = &[
    ("setup_lock", "echo setup >>pkg.lock"),
    ("setup_file", "echo generated >generated.txt"),
    ("setup_touch", "touch list.txt crlf.txt src/a.rs"),
    ("setup_modules", "mkdir -p node_modules/dep; echo dep >node_modules/dep/index.js"),
    ("setup_format", "echo formatted >src/a.rs"),
    ("setup_mode", "if [ -e list.txt ]; then chmod +x list.txt; fi"),
    ("setup_delete", "rm -f src/b.rs"),
    ("setup_sub", "if [ -e .gitmodules ]; then git -c protocol.file.allow=always submodule --quiet update --init; fi"),
];

/// What `worktree.copy` names.
pub const COPIES: [&str; 3] = [".env", "node_modules", "src/a.rs"];

/// What the owner does between two drains.
#[rustfmt::skip]
pub const OWNERS: &[(&str, &str)] = &[
    ("owner_nothing", "true"),
    ("owner_commits", "echo more >more.txt; git add more.txt; git commit -qm More"),
    ("owner_amends", "git commit -q --amend -m Amended"),
    ("owner_resets", "git reset -q --hard HEAD~1"),
    ("owner_pops", "git reset -q --hard; rm -f owned.txt; git stash pop -q || true"),
    ("owner_packs", "git gc -q --prune=now"),
    ("owner_merges", "git merge -q --no-edit tavern/integration || git merge --abort || true"),
    ("owner_deletes", "git branch -q -D tavern/integration"),
];

/// Dates are not by chance, so that a commit in a submodule has the same ID in both worlds.
pub const DATES: &str =
    "export GIT_AUTHOR_DATE=2030-01-01T00:00:00Z GIT_COMMITTER_DATE=2030-01-01T00:00:00Z";

/// All that a repository keeps, as text.
pub const KEPT: &str = "git rev-list --objects --all $(git stash list --format=%H) | cut -d' ' -f1 | git cat-file --batch --buffer";

/// Commits that the base branch had once, and that the integration branch has yet.
pub const DROPPED: &str = "git rev-list -g main | sort -u | while read one; do git merge-base --is-ancestor $one main || ! git merge-base --is-ancestor $one tavern/integration || echo $one; done 2>/dev/null";

/// Deeds after which a set-up that fetches submodules fails.
pub const BREAKS_SET_UP: [&str; 3] = ["sub_commit", "sub_commit_linked", "sub_added"];

/// Deeds that are refused with words: a commit can't hold what they made.
pub const REFUSED: [&str; 2] = ["orphan", "sub_changed"];

/// Takes the marks away by which git does not see what was written.
pub const UNHIDE: &str = "if [ -e list.txt ]; then for mark in assume-unchanged skip-worktree; do git update-index -q --no-$mark list.txt 2>/dev/null || true; done; fi";
