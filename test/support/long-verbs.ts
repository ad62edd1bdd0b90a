/** The verbs that show at a terminal how far they are; `cli.progress.test.ts` looks at them. */
export const showing: readonly string[] = [
  ...['append', 'attest', 'audit', 'backup', 'check', 'copy', 'doctor', 'export', 'graph', 'import', 'logs'],
  ...['clone', 'pull', 'purge', 'push', 'raw', 'redact', 'restore', 'search', 'verify'],
];

/** Why other verbs never take long without saying so. A new verb shows how far it is, or has a reason here. */
export const brief: Readonly<Record<string, string>> = {
  'writes a few rows, however large the home is':
    'init new anchor handoff fork branch send discard rewind undo alias unalias link rename archive delete abort merge resolve identity',
  'a model or a tool answers, and what comes of it is shown as it comes':
    'run chat delegate compact approve recover',
  'makes a small home': 'demo',
  'shows the rows of a page, or prints them as it reads them':
    'sessions children status overview usage lineage trace',
  'reads one session, and prints it as it reads it': 'log show view diff blame',
  'waits for others as long as the user wants, and says what they do': 'wait worker',
  'serves a program, or a browser, which asks for each thing': 'mcp ui',
  'reads and writes small files of settings': 'config trust permissions remote',
  'prints a text of the command itself': 'completion schema',
};
