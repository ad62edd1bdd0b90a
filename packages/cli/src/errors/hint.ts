import { isObject } from '@tapedeck/tape/internal';
import { commandLine, shellWord } from '../escape.ts';
import { serverHint } from './server-hint.ts';

/** A hint at the next command; undefined when none is known. */
export function hintFor(code: string, data: Readonly<Record<string, unknown>>): string | undefined {
  const near =
    Array.isArray(data.near) && data.near.length > 0 ? data.near.map((name) => `'${name}'`).join(' or ') : '';
  const session = typeof data.session === 'string' ? data.session : 'NAME';
  if (code.startsWith('TAPE_') && typeof data.server === 'string')
    return serverHint(code, data.server, data.reason);
  switch (code) {
    case 'CLI_UNTRUSTED':
      return `read it, and trust it with: tape trust ${shellWord(String(data.dir))}; or run without it: --no-config`;
    case 'CLI_FOREIGN_HOME':
      if (data.alias !== undefined)
        return `it stands for: tape ${String(data.text)}; to use it, set it here: tape config set alias.${String(data.alias)} ${shellWord(String(data.text))}`;
      if (Array.isArray(data.brought))
        return `take them away with: tape config unset ${String(data.brought[0])}; or edit the file, and trust it with: tape trust ${shellWord(String(data.home))}`;
      if (isObject(data.creator) && data.creator.state !== 'ended')
        return `resume or end the named process, and try again; or see what the home brings in with: tape trust ${shellWord(String(data.home))} --dry-run`;
      return data.tapes === true
        ? `read it with log, show, search, graph or check; see what it brings in with: tape trust ${shellWord(String(data.home))} --dry-run; or name another with --home`
        : `make it a tape home with: tape init --home ${shellWord(String(data.home))}; or name another with --home`;
    case 'CLI_BAD_CONFIG':
      return configHint(data);
    case 'CLI_NOT_FOUND':
      if (typeof data.tapeHome === 'string')
        return `trust its tapes with: tape trust ${shellWord(data.tapeHome)}`;
      if (data.missing === true)
        return `create it with: tape init --home ${shellWord(String(data.home))}; or name another with --home or TAPE_HOME`;
      if (typeof data.deleted_from === 'string')
        return `their tool deletes ${Number(data.expiring)} of ${Number(data.transcripts)} transcripts from ${data.deleted_from.slice(0, 10)} on: keep them with: tape import`;
      if (data.empty === true)
        return 'begin a session with: tape new NAME; or keep those of another agent with: tape import';
      if (typeof data.remote === 'string')
        return `${near === '' ? '' : `did you mean ${near}? `}All remotes: tape remote`;
      if (data.source !== undefined) return 'list sessions with: tape sessions';
      if (data.verb === undefined) return undefined;
      return `${near === '' ? '' : `did you mean ${near}? `}All verbs: tape --help`;
    case 'CLI_NO_DRIVER':
      return `install what talks to a server where tape is installed: npm install --global pg kysely${data.package === 'pg-boss' ? ' pg-boss' : ''}`;
    case 'CLI_CANNOT_LISTEN':
      return 'let it take a free port: tape ui';
    case 'CLI_TOO_LARGE':
      return 'leave out --tree, name a session below it, or show all of it with: tape ui';
    case 'CLI_NOTHING_TO_MERGE': {
      const child = String(data.child);
      return `run it with: ${commandLine('run', [child])}; give its result with: ${commandLine('merge', [child], ['--result TEXT'])}; or discard it with: ${commandLine('discard', [child])}`;
    }
    case 'TAPE_BAD_NAME':
      // Any text names a session, such as that of a branch. An anchor has no such name. Only one short printable line is
      // repeated: other texts could steer the terminal, or fill it.
      return typeof data.name === 'string' && /^[^\p{C}\p{Zl}\p{Zp}]{1,200}$/u.test(data.name)
        ? `make a session for this text with: tape new --id ${shellWord(data.name)}`
        : undefined;
    case 'TAPE_BAD_ENTRY':
      return data.imported === true
        ? `erase all that was imported of it with: tape import --forget ${shellWord(session)}; or the session with: ${commandLine('purge', [session])}`
        : undefined;
    case 'IMPORT_EXCLUDED':
      return 'see the patterns with: tape config get import.exclude; others stand in a .tapeignore above the file, or above its working directory';
    case 'IMPORT_FORGOTTEN':
      return 'take it again under another name with: --as NAME';
    case 'IMPORT_TOO_LARGE':
      // Of a file the place is known.
      return data.offset === undefined
        ? 'write it to a plain file, and import that: tape import FILE'
        : undefined;
    case 'IMPORT_BAD_JSON':
    case 'IMPORT_UNKNOWN_FORMAT':
      if (typeof data.tool === 'string')
        return `nothing is lost while ${data.tool} has it, and tape changes no file: a later version will read it`;
      if (data.strict === true) return 'take it, but for what is wrong in it, without: --strict';
      // A later line is damage in a transcript.
      return data.line === undefined || data.line === 1
        ? 'transcripts of Claude Code are in ~/.claude/projects'
        : undefined;
    case 'TAPE_NO_SESSION':
    case 'GRAPH_NO_SESSION':
      if (typeof data.deleted === 'string')
        return `bring it back with: ${commandLine('undo', [data.deleted])}; erase it with: ${commandLine('purge', [data.deleted])}; or make a new one with: ${commandLine('new', [session])}`;
      if (typeof data.purged === 'string')
        return `if the purge was interrupted, finish it with: ${commandLine('purge', [data.purged])}; or make a new one with: ${commandLine('new', [session])}`;
      if (data.creates === true) return `use ${near}; or create ${shellWord(session)} with: --new`;
      return near === ''
        ? 'list sessions with: tape sessions'
        : `did you mean ${near}? All sessions: tape sessions`;
    case 'TAPE_NO_ANCHOR': {
      const list = `list anchors with: ${commandLine('log', [session], ['--kind anchor'])}`;
      if (/^\S+\.\.\S+$/.test(String(data.anchor)))
        return `a range of entries is one for log: ${commandLine('log', [`${session}@${String(data.anchor)}`])}`;
      if (isObject(data.hidden)) return hiddenHint(session, data.hidden);
      return near === '' ? list : `did you mean ${near}? Or ${list}`;
    }
    case 'TAPE_BAD_POINT':
      if (data.hidden !== undefined)
        return `see it with: ${commandLine('show', [`${session}@${String(data.seq)}`])}; or undo the rewind with: ${commandLine('undo', [`${session}@${String(data.hidden)}`])}`;
      return data.message === undefined
        ? undefined
        : `the message of that turn is ${session}@${String(data.message)}`;
    case 'TAPE_NO_SEQ':
      return `list the last entries with: ${commandLine('log', [session], ['-n 20'])}`;
    case 'TAPE_BUSY':
    case 'SESSION_BUSY':
      if (typeof data.child === 'string')
        return `wait until it is idle with: ${commandLine('wait', [data.child])}; or use its settled entries: --force`;
      return `wait until it is idle with: ${commandLine('wait', [session])}; or send it a message with: ${commandLine('send', [session])}`;
    case 'TAPE_KEY_CONFLICT':
      return typeof data.task === 'string'
        ? `repeat the command with the options that ${String(data.session)} was forked with, or do the tasks anew with --again`
        : undefined;
    case 'TAPE_EXISTS':
      if (typeof data.resume === 'string') return `the session can be continued from it with: ${data.resume}`;
      if (typeof data.home === 'string')
        return `choose another directory; or look at these tapes with: tape check --home ${shellWord(data.home)}`;
      if (data.graph === true) return 'name a new file, or remove this one';
      if (typeof data.remote === 'string')
        return `choose another name, or remove it first: tape remote remove ${data.remote}`;
      if (Array.isArray(data.aliases))
        return `aliases of ${session}: ${data.aliases.length === 0 ? 'none' : data.aliases.join(', ')}`;
      if (typeof data.deleted === 'string')
        return `free the name, or go on in a branch with a name of its own: ${commandLine('branch', [data.deleted], ['--as NAME'])}`;
      if (typeof data.as === 'string')
        return `import it without --as; to give it that name, too: ${commandLine('alias', [session, data.as])}`;
      if (data.bundle === true || data.transcript === true) return 'choose another name with: --as NAME';
      return near === '' ? 'choose another name' : `use ${near}, or choose another name`;
    case 'SESSION_NO_ROUTE':
      return 'routes stand in config.yaml of the home: see tape help config';
    case 'TAPE_CONFLICT':
      if (Array.isArray(data.linked))
        return `name these addresses, too; or separate it first: tape identity unlink ${shellWord(String(data.linked[0]))} ${shellWord(String(data.address))}`;
      return Array.isArray(data.forks)
        ? `purge these first: ${data.forks
            .map((fork) => commandLine('purge', [String(fork)]))
            .slice(0, 3)
            .join('; ')}`
        : undefined;
    case 'TAPE_DIVERGED':
      if (data.remote === true) return 'pull first: tape pull';
      return data.alongside === true
        ? `take it in beside the session, under another name, with: --as NAME`
        : 'nothing was imported: ask for a bundle of the session alone, or look at both with: tape log';
    case 'TAPE_MISSING_BASE':
      return 'import the bundles in the order in which they were made, or pull: tape pull';
    case 'TAPE_REMOTE_FAILED':
      if (typeof data.home === 'string')
        return `name another path; or make the home there with: tape init --home ${shellWord(data.home)}`;
      return data.missing === true
        ? 'mount it, or push to it first: tape push; when it is gone for good, add another with: tape remote add NAME URL'
        : undefined;
    case 'TAPE_BAD_REMOTE':
      return data.pack === undefined
        ? 'name an empty directory, or one that has nothing but packs'
        : 'bring the pack back where it was; or begin anew with another directory: tape remote add NAME URL';
    case 'TAPE_ARCHIVED':
      if (data.lifecycle === 'purged')
        return data.transcript === true ? 'take it again under another name with: --as NAME' : undefined;
      if (data.lifecycle === 'destroyed')
        return `bring it back with: ${commandLine('undo', [String(data.id)])}`;
      return `make it active again with: ${commandLine('archive', [String(data.parent ?? session)], ['--undo'])}`;
    case 'TAPE_UNSETTLED':
      if (typeof data.child === 'string')
        return `continue it with: ${commandLine('run', [data.child])}; answer pending calls with: ${commandLine('approve', [data.child])}; or use its settled entries: --force`;
      return `append the missing tool results, or continue with: ${commandLine('run', [String(data.parent ?? session)])}`;
    case 'SESSION_NO_FILE':
    case 'SESSION_BAD_SCRIPT':
      return data.abortable === true ? hintFor('SESSION_NO_MODEL', data) : undefined;
    case 'SESSION_NO_MODEL':
      return data.abortable === true
        ? `continue with: ${commandLine('recover', [session], ['--model SPEC'])}, or abort it with: ${commandLine('recover', [session], ['--abort'])}`
        : 'set one with: --model openai-compatible/MODEL, or --model script:FILE';
    case 'SESSION_MODEL_TOO_SMALL':
      return `continue with the previous model, from an earlier point with: ${commandLine('branch', [`${session}@POINT`])}; or with the last messages: ${commandLine('branch', [session], ['--last N'])}`;
    case 'SESSION_RETRY_LATER':
      return `continue at that time with: ${commandLine('run', [session])}; or wait for longer delays with limits.max_retry_after_ms in config.yaml`;
    case 'SESSION_COMPACTION_FAILED':
      return data.summarizer === undefined
        ? undefined
        : `see the request and the answer of the model: ${commandLine('log', [String(data.summarizer)], ['--own'])}`;
    case 'SESSION_CANNOT_UNDO':
      if (data.after === undefined) return wayBackHint(session, data);
      if (data.before !== undefined)
        return `rewind to before the message that it followed: ${commandLine('rewind', [`${session}@${String(data.before)}`])}`;
      return data.message === undefined
        ? `rewind to before a user message with: ${commandLine('rewind', [`${session}@SEQ`])}`
        : `rewind to before that message first: ${commandLine('rewind', [`${session}@${String(data.message)}`])}; then: ${commandLine('undo', [`${session}@${String(data.seq)}`])}`;
    case 'SESSION_NO_CALL':
      if (typeof data.left === 'string')
        return `the answer is recorded, and no process runs ${data.left}; go on with: ${commandLine('run', [data.left])}`;
      if (data.without_tool !== undefined)
        return `run it with a configuration that has the tool: ${commandLine('run', [String(data.without_tool)], ['--config FILE'])}`;
      if (data.children === true)
        return `its children wait for no answer; go on with: ${commandLine('recover', [session])}`;
      return `list pending calls with: ${commandLine('status', [session])}`;
    case 'SESSION_NO_TOOL':
      return toolHint(near, data);
    case 'SESSION_BAD_INPUT':
      if (Array.isArray(data.personas)) return 'name one with: --persona NAME';
      return data.schema === undefined ? undefined : argumentsHint(data.schema);
    case 'SESSION_NO_KEY':
      return `set it and try again: export ${String(data.variable)}=...${
        data.abortable === true
          ? `; or use another model: ${commandLine('recover', [session], ['--model SPEC'])}`
          : ''
      }`;
    case 'SESSION_MERGE_WAITING':
      return 'the merge is queued, and runs when the parent is idle';
    case 'SESSION_LIMIT':
      return typeof data.limit === 'string' && limitsOfForks.has(data.limit)
        ? limitHint(data.limit, data)
        : undefined;
    case 'SESSION_NO_GIT':
      return 'install git, 2.32 or newer';
    case 'SESSION_NO_REPOSITORY':
      return 'give a directory in a git repository that has a commit: --repository DIR (for merge: --into-dir DIR)';
    case 'SESSION_NO_WORKSPACE':
      return workspaceHint(data);
    case 'SESSION_PATCH_TOO_LARGE':
      return `add generated files to .gitignore, or merge it without its patch: ${commandLine('merge', [session], ['--force'])}`;
    case 'SESSION_CANNOT_APPLY':
      return `change those files and try again, merge without --apply, or apply it elsewhere: ${commandLine('merge', [session], ['--apply --into-dir DIR'])}`;
    case 'TAPE_UNSAFE_PLACE':
      if (data.owner !== undefined)
        return 'verbs that only read work; to write, copy the directory and name the copy with --home';
      if (data.sharedDir !== undefined) return 'choose a directory that you own with --home';
      return data.dir === undefined
        ? 'choose another home with --home; or use it at your own risk: TAPE_ALLOW_UNSAFE_FS=1'
        : `make it private with: chmod 700 ${String(data.dir)}`;
    case 'TAPE_CANNOT_OPEN':
      return data.readonly === true
        ? 'verbs that only read work; to write, copy the directory and name the copy with --home'
        : undefined;
    case 'TAPE_LOCKED':
      return [data.holders, data.processes].some((named) => Array.isArray(named) && named.length > 0)
        ? 'resume or end the named process, and try again'
        : 'find the process that has tape.db open, and try again';
    case 'TAPE_SCHEMA_OLDER':
      return 'migrate it, and keep a copy of the old file, with: tape raw checkpoint';
    case 'TAPE_CORRUPT':
    case 'TAPE_NOT_A_TAPE':
      if (data.backup !== undefined) return 'choose another backup: nothing was restored';
      if (data.base !== undefined) return 'name the base of the tapes with: --base tape';
      return 'find the damage with: tape check; or make a new home of a backup with: tape restore FILE DIR';
    case 'GRAPH_DIVERGED':
      return 'restore a backup in another directory with: tape restore FILE DIR; or rename session_graph.jsonl to begin anew';
    default:
      return undefined;
  }
}

/** How to take back what was done with a session, and is no act of it. */
function wayBackHint(
  session: string,
  { renamed, imported }: Readonly<Record<string, unknown>>,
): string | undefined {
  const ways = [
    ...(typeof renamed === 'string'
      ? [`its new name with: ${commandLine('rename', [renamed, session])}`]
      : []),
    ...(imported === true ? [`the import with: ${commandLine('archive', [session])}`] : []),
  ];
  return ways.length === 0 ? undefined : `take back ${ways.join('; or ')}`;
}

/** How many tools a hint names. */
const toolsMax = 20;

function toolHint(near: string, { tools }: Readonly<Record<string, unknown>>): string {
  const known = Array.isArray(tools) ? tools : [];
  if (known.length === 0) return 'name a configuration that has the tool with: --config FILE';
  const more = known.length > toolsMax ? `, and ${known.length - toolsMax} more` : '';
  const all = `the tools of the configuration are: ${known.slice(0, toolsMax).join(', ')}${more}`;
  return near === '' ? all : `did you mean ${near}? ${all.replace(/^t/, 'T')}`;
}

/** What a tool takes, if that is short. */
function argumentsHint(schema: unknown): string | undefined {
  const text = JSON.stringify(schema);
  return text.length > 1_000 ? undefined : `the arguments have this schema: ${text}`;
}

/** The limits of forks that a configuration sets, in the spelling of `config.yaml`. */
const limitsOfForks: ReadonlyMap<string, string> = new Map([
  ['maxDepth', 'max_depth'],
  ['maxChildren', 'max_children'],
  ['maxTree', 'max_tree'],
]);

function limitHint(limit: string, { max, children }: Readonly<Record<string, unknown>>): string {
  // Without unfinished children the command alone exceeds the limit.
  const fewer = `give one command at most ${max === 1 ? '1 task' : `${String(max)} tasks`}; or `;
  const finish =
    limit === 'maxDepth' ? '' : children === 0 ? fewer : 'finish the children with: tape recover; or ';
  return `${finish}set limits.${limit} in tape.config.mts, or limits.${limitsOfForks.get(limit)} in config.yaml`;
}

function workspaceHint({ session, path, git, commit }: Readonly<Record<string, unknown>>): string {
  if (path === undefined) return 'fork with one: tape fork PARENT --workspace worktree';
  const merge = `merge without its files: ${commandLine('merge', [String(session)], ['--force'])}`;
  if (commit === undefined) return merge;
  const again = `git --git-dir=${shellWord(String(git))} worktree add --force --detach ${shellWord(String(path))} ${String(commit)}`;
  return `${merge}; or recreate it from its base: ${again}`;
}

function configHint({
  config,
  missing,
  unplaced,
  lock,
  mode,
}: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof missing === 'string' && missing.startsWith('@tapedeck/'))
    return 'export the object without defineDeck, or install the packages beside it from a checkout of Tapedeck: pnpm -C CHECKOUT pack:all && npm install CHECKOUT/dist/tapedeck-*.tgz';
  if (missing !== undefined) return `install ${String(missing)} beside the configuration`;
  if (unplaced === true) return `find the line with: node --check ${shellWord(String(config))}`;
  if (lock !== undefined)
    return `if nothing else is changing it, remove the lock: rm -r ${shellWord(String(lock))}`;
  if (mode !== undefined)
    return `check its content, and make it private with: chmod 600 ${shellWord(String(config))}`;
  return undefined;
}

/** How to reach an anchor that a rewind hides, and to show it again: a fork cannot undo what it inherited. */
function hiddenHint(session: string, { seq, by, inherited }: Readonly<Record<string, unknown>>): string {
  const place = shellWord(`${session}@${String(seq)}`);
  const reach = `name it by its position: ${place}`;
  return inherited === true
    ? reach
    : `${reach}; or undo the rewind with: ${commandLine('undo', [`${session}@${String(by)}`])}`;
}
