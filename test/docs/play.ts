import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tempDir } from '../support/temp-dir.ts';
import { allCodeBlocks, type CodeBlock, root } from './pages.ts';
import { bin, plainEnv } from './tape.ts';

/** A command of a transcript, as it stands on the page, and as a shell reads it. */
interface Command {
  readonly shown: string;
  readonly line: string;
}

/** The commands of a transcript: a line behind `$ `, with the lines behind `> ` that follow it. */
function commandsOf({ code }: CodeBlock): Command[] {
  return Array.from(code.matchAll(/^\$ .*\n(?:> .*\n|>\n)*/gm), ([shown]) => ({
    shown,
    line: shown.replace(/^(?:\$|>) ?/gm, ''),
  }));
}

/** Printed before the output of each command. */
const mark = '--- command of a transcript ---';

/** Git needs a name for commits; readers have one. */
const person = {
  GIT_AUTHOR_NAME: 'Reader',
  GIT_AUTHOR_EMAIL: 'reader@example.org',
  GIT_COMMITTER_NAME: 'Reader',
  GIT_COMMITTER_EMAIL: 'reader@example.org',
};

/**
 * Plays a page from top to bottom in one shell and an empty directory: a block with a title is written as a file, and
 * each command of a `console` block runs. Returns the page with the output that the commands print.
 */
export function play(text: string): string {
  using home = tempDir();
  const dir = home.file('project');
  mkdirSync(dir);
  // Beside the project, where git does not see them: Node.js looks them up from there too.
  symlinkSync(join(root, 'node_modules'), home.file('node_modules'));
  const blocks = allCodeBlocks(text);
  const script = blocks.flatMap((block, i) => {
    if (block.language === 'console')
      return commandsOf(block).map(({ line }) => `printf '%s\\n' '${mark}'\n${line}`);
    if (block.title === undefined) return [];
    writeFileSync(home.file(`block-${i}`), block.code);
    return [`mkdir -p '${dirname(block.title)}'\ncp '${home.file(`block-${i}`)}' '${block.title}'\n`];
  });
  const said = shellOutput(home.path, dir, script.join(''));
  const outputs = said.split(`${mark}\n`).slice(1);
  return blocks
    .filter(({ language }) => language === 'console')
    .reduce((page, block) => {
      const played = commandsOf(block).map(({ shown }) => `${shown}${outputs.shift() ?? ''}`);
      return page.replace(block.code, () => played.join(''));
    }, text);
}

/** What a script prints, both streams in the order in which they were written, without the paths of this machine. */
function shellOutput(home: string, dir: string, script: string): string {
  const file = join(home, 'said');
  const fd = openSync(file, 'w+');
  const prelude = `tape() { "${process.execPath}" "${bin}" "$@"; }\nnode() { "${process.execPath}" "$@"; }\nexport -f tape node\n`;
  writeFileSync(join(home, 'script.sh'), prelude + script);
  try {
    spawnSync('bash', [join(home, 'script.sh')], {
      cwd: dir,
      env: plainEnv(home, person),
      stdio: ['ignore', fd, fd],
    });
    // A shell that runs a script says more of a kill than a terminal shows.
    const killed = /^.*: line \d+: +\d+ Killed .*$/gm;
    return readFileSync(file, 'utf8')
      .replace(killed, 'Killed')
      .replaceAll(home, '~')
      .replaceAll(root, 'CHECKOUT/');
  } finally {
    closeSync(fd);
  }
}

/** The blocks of a page that nothing plays: they are neither a transcript nor a file that something after them uses. */
export function unplayed(text: string): CodeBlock[] {
  const blocks = allCodeBlocks(text);
  return blocks.filter(({ language, title }, i) => {
    if (language === 'console') return false;
    if (title === undefined) return language !== '' && language !== 'text';
    const later = blocks
      .slice(i + 1)
      .filter((block) => block.language === 'console' || block.title !== undefined);
    return !foundByTape.test(title) && !later.some(({ code }) => code.includes(title));
  });
}

/** Files that `tape` finds by their names. */
const foundByTape = /(?:^|\/)(?:tape\.config\.mts|config\.yaml|AGENTS\.md|SKILL\.md)$/;
