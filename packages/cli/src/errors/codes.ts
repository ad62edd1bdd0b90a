import { exit } from '../exit.ts';

/** Exit code and meaning of each error code; part of the documented contract. */
export const errorCodes: Readonly<Record<string, readonly [exit: number, meaning: string]>> = {
  CLI_USAGE: [exit.usage, 'the command line is not valid'],
  CLI_INTERRUPTED: [exit.interrupted, 'interrupted before the end; recorded entries stay on the tape'],
  CLI_NOT_FOUND: [
    exit.notFound,
    'no such file or tape home; for the verb of `tape schema` `data.near` has the nearest names',
  ],
  CLI_BAD_CONFIG: [
    exit.usage,
    'a configuration, or the record of trust, cannot be used; `data.config` names the file',
  ],
  CLI_UNTRUSTED: [
    exit.usage,
    'the configuration is code that is not trusted, or has changed since; `data.dir` names the directory',
  ],
  CLI_FOREIGN_HOME: [
    exit.usage,
    'the home was found in or above the working directory, and was not created by this user on this machine; `data.home` names it, and `data.creator` a process that began to create it and has not recorded that',
  ],
  CLI_NOTHING_TO_MERGE: [
    exit.conflict,
    'the child (`data.child`) has not run: it has neither entries of its own nor a worktree',
  ],
  CLI_NO_DRIVER: [
    exit.failed,
    'the home is on a server, and the package that talks to one (`data.package`) is not installed',
  ],
  CLI_CANNOT_LISTEN: [exit.failed, 'the port (`data.port`) is taken, or this user may not use it'],
  CLI_TOO_LARGE: [
    exit.usage,
    'the session (`data.session`) and what is exported with it have too many entries (`data.entries`), or too much text, for one page',
  ],
  CLI_FAILED: [exit.failed, 'any other error'],
  TAPE_NO_SESSION: [
    exit.notFound,
    'no session of that name, alias or id; `data.near` has the nearest names, `data.deleted` the ULID of a deleted one, `data.purged` that of a purged one',
  ],
  TAPE_NO_ANCHOR: [
    exit.notFound,
    'no such anchor; `data.near` has the nearest names, `data.hidden` the rewind that hides it',
  ],
  TAPE_NO_SEQ: [exit.notFound, 'the session has no such position'],
  TAPE_NO_BLOB: [exit.notFound, 'no blob of that hash'],
  TAPE_BAD_NAME: [exit.usage, 'the name is not allowed'],
  TAPE_BAD_ENTRY: [exit.usage, 'cannot be appended: no such kind, not JSON, too large, nested too deep'],
  TAPE_BAD_OPTION: [
    exit.usage,
    'no such option (`data.field`) of a method; `data.near` has the nearest names',
  ],
  TAPE_BAD_POINT: [
    exit.usage,
    'the point is not valid here; for a rewind, `data.message` is the message of that turn, `data.hidden` the rewind that hides the point',
  ],
  TAPE_BAD_POLICY: [exit.usage, 'the policy of a view contradicts itself, or has an invalid rule'],
  TAPE_BAD_STATUS: [
    exit.usage,
    'no such lifecycle, task or merge strategy (`data.value`); `data.allowed` has the valid ones',
  ],
  TAPE_EXISTS: [exit.conflict, 'the name is taken'],
  TAPE_KEY_CONFLICT: [exit.conflict, 'the key was used before, with other content'],
  TAPE_CONFLICT: [
    exit.conflict,
    'the merge contradicts an earlier one, or both sides wrote the same key or file; forks inherit what a purge would erase (`data.forks`); or a link would put a session below itself, or no link is there to take back',
  ],
  TAPE_ARCHIVED: [
    exit.conflict,
    'the session, or the parent of a merge (`data.parent`), is archived, deleted or purged (`data.lifecycle`): nothing is written',
  ],
  TAPE_STALE_HEAD: [exit.conflict, 'the session has new entries since it was read'],
  TAPE_BUSY: [exit.conflict, 'another owner is writing the session; `data.owner` names it'],
  TAPE_FENCED: [exit.conflict, 'another owner has taken over the session'],
  TAPE_UNSETTLED: [exit.conflict, 'tool calls have no result yet'],
  TAPE_LOCKED: [
    exit.conflict,
    "another process held the database's write lock for 15 seconds; `data.processes` are those that hold it now (Linux), `data.holders` the leases",
  ],
  TAPE_CLOSED: [exit.failed, 'the store is closed'],
  TAPE_CANNOT_OPEN: [
    exit.failed,
    'the file cannot be opened or created; or the server does not answer, or lets this user not in',
  ],
  TAPE_CANNOT_REDACT: [
    exit.failed,
    'a value could not be searched for secrets, so that nothing of it was written',
  ],
  TAPE_UNSAFE_PLACE: [
    exit.failed,
    'the home is on a file system without reliable locks, belongs to another user, or is open to other users',
  ],
  TAPE_SCHEMA_NEWER: [exit.failed, 'a newer version wrote the file'],
  TAPE_SCHEMA_OLDER: [exit.failed, 'an older version wrote the file, which was opened for reading only'],
  TAPE_NOT_A_TAPE: [exit.damaged, 'the file is the database of another program, or has no tapes'],
  TAPE_CORRUPT: [exit.damaged, 'the database or a stored text is damaged'],
  TAPE_BAD_BUNDLE: [
    exit.failed,
    'the bundle is not whole, was changed, or is of a newer format; `data.file` and `data.line` say where',
  ],
  TAPE_DIVERGED: [exit.conflict, 'the session of a bundle went on in another way here, at `data.seq`'],
  TAPE_MISSING_BASE: [
    exit.conflict,
    'a session of a bundle continues, or descends from, what is not here: an earlier bundle has it',
  ],
  TAPE_REMOTE_FAILED: [
    exit.failed,
    'the remote (`data.url`) cannot be reached, read or written; with `data.home`, there is no such home on that machine',
  ],
  TAPE_BAD_REMOTE: [
    exit.failed,
    'the remote (`data.url`) has what is no pack, or a pack (`data.pack`) is gone or was changed',
  ],
  TAPE_IO: [exit.failed, 'the disk is full, failing or read-only'],
  GRAPH_DIVERGED: [
    exit.damaged,
    'the database is new, and the graph file has lines of another one: the database was lost',
  ],
  GRAPH_UNREADABLE: [exit.failed, 'the graph file cannot be read'],
  GRAPH_IO: [exit.failed, 'the graph file cannot be written'],
  GRAPH_NO_SESSION: [exit.notFound, 'the graph has no such session'],
  SESSION_BUSY: [exit.conflict, 'the session has an active run'],
  SESSION_NO_MODEL: [exit.usage, 'no model was given, or the model does not exist'],
  SESSION_NO_KEY: [exit.usage, 'the variable with the key or address is not set; `data.variable` names it'],
  SESSION_NO_FILE: [exit.usage, 'the script cannot be read'],
  SESSION_BAD_SCRIPT: [exit.usage, 'the script is not valid'],
  SESSION_BAD_CONFIG: [exit.usage, 'a configuration is not valid; `data.field` names the field'],
  SESSION_SCRIPT_ENDED: [exit.failed, 'the script has no answer left for the call'],
  SESSION_MODEL_FAILED: [exit.failed, 'the model failed'],
  SESSION_RETRY_LATER: [
    exit.failed,
    'the provider takes no calls for longer than `limits.maxRetryAfterMs`; `data.retryAt` is when it does',
  ],
  SESSION_COMPACTION_FAILED: [
    exit.failed,
    'the session cannot be summarised: the model wrote no summary, or no smaller one, or the session is too large for the summarizer',
  ],
  SESSION_MODEL_TOO_SMALL: [
    exit.conflict,
    'the session does not fit the new model, even summarised; it keeps its previous model',
  ],
  SESSION_CANNOT_UNDO: [
    exit.conflict,
    'nothing to undo, or entries follow what is no rewind; `data.after` is the first of them. `data.renamed` (the name that a rename gave) and `data.imported` say what no undo takes back',
  ],
  SESSION_BAD_INPUT: [
    exit.usage,
    'a message is empty, its queue mode does not exist, its source is a `cron` without a job, or an option, a setting or the arguments of a call are not valid',
  ],
  SESSION_NO_CALL: [exit.notFound, 'no pending call has that id'],
  SESSION_NO_TOOL: [
    exit.notFound,
    'no such tool (`data.tool`); `data.tools` has those that there are, `data.near` the nearest names',
  ],
  SESSION_NO_ROUTE: [
    exit.notFound,
    'no route of the configuration matches the delivery; `data.routes` has their names',
  ],
  SESSION_LIMIT: [
    exit.conflict,
    'the child would exceed the maximum depth, the maximum number of children, or the budget of an ancestor',
  ],
  SESSION_BAD_RESULT: [exit.failed, 'a result is missing, or does not match its schema'],
  SESSION_ENDED: [exit.conflict, 'the task of the session has already ended'],
  SESSION_CLOSED: [exit.failed, 'the session no longer exists, or its deck was closed'],
  CLI_EXITED: [exit.failed, 'a tool or the configuration ended the process before the command was done'],
  SESSION_WAITS_FOR_ITSELF: [exit.failed, 'a tool waits for the run that waits for the tool'],
  SESSION_MERGE_WAITING: [exit.accepted, 'the merge waits in the inbox of the parent'],
  SESSION_NO_GIT: [exit.failed, 'git is not installed, which worktrees need'],
  SESSION_NO_REPOSITORY: [
    exit.usage,
    'the directory is not in a git repository with a working tree and a commit',
  ],
  SESSION_NO_WORKSPACE: [
    exit.notFound,
    'the child has no worktree, or its worktree was removed with its files',
  ],
  SESSION_WORKSPACE_FAILED: [
    exit.failed,
    'git or the disk failed on a worktree; the message has the output of git',
  ],
  SESSION_PATCH_TOO_LARGE: [
    exit.failed,
    'the patch of a worktree is larger than `data.bytesMax` bytes; nothing was recorded',
  ],
  SESSION_CANNOT_APPLY: [
    exit.conflict,
    'the patch of a worktree does not apply to `data.files` of `data.dir`; no file was changed',
  ],
  IMPORT_CANNOT_READ: [exit.failed, 'the transcript cannot be read'],
  IMPORT_EMPTY: [exit.failed, 'the transcript has no records'],
  IMPORT_BAD_JSON: [
    exit.failed,
    'no line is a record, or more lines than that are not JSON; `data.line` and `data.offset` locate the first',
  ],
  IMPORT_UNKNOWN_FORMAT: [
    exit.failed,
    'no record is one of a transcript of Claude Code; with `--strict`, the record at `data.line` is irregular',
  ],
  IMPORT_TOO_LARGE: [
    exit.failed,
    'what a pipe gives to `import` is no bundle, and has over 512 MiB, or what a compressed file has is neither that nor a transcript of Claude Code, and over 64 MiB; or a file has, at `data.line` and `data.offset`, more content or records than a transcript of its size',
  ],
  IMPORT_SOURCE_CHANGED: [
    exit.conflict,
    'a transcript no longer has what an earlier import read of it, up to byte `data.offset`',
  ],
  IMPORT_FORMAT_FAILED: [
    exit.failed,
    'what reads the transcripts of `data.tool` failed at the transcript, which is a fault of it',
  ],
  IMPORT_EXCLUDED: [exit.failed, 'a pattern leaves the transcript out'],
  IMPORT_FORGOTTEN: [exit.failed, 'the session of the transcript was forgotten'],
  IMPORT_CANNOT_WRITE: [exit.failed, 'what is known of imported files cannot be written'],
};
