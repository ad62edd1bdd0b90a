import { ConfigError } from '../errors/kinds.ts';
import { plainWord, shellWord } from '../escape.ts';
import type { Job, Runs, Timer } from './job.ts';
import { ownMark } from './own-text.ts';
import type { Place } from './place.ts';

/** How the line of this command ends: to the shell it is a comment. */
const mark = `# ${ownMark}`;

/** The word of the home in such a line. */
const ownHome = new RegExp(` --home (.+) >/dev/null 2>&1 ${mark}$`, 'm');

/** A line in the user's table of cron. */
export function cronTimer(run: Runs): Timer {
  return {
    name: 'cron',
    isHere: () => run('crontab', ['-l']) !== undefined,
    isWritten: () => run('crontab', ['-l'])?.stdout.includes(ownMark) === true,
    homeIn: () => {
      const [, word] = ownHome.exec(run('crontab', ['-l'])?.stdout ?? '') ?? [];
      return word && plainWord(word.replaceAll('\\%', '%'));
    },
    parts: (job) => [{ place: crontab(run), change: (text) => withCronLine(text, job) }],
    // Cron reads its table when it changes.
    start: () => undefined,
    stop: () => {},
  };
}

/** The table with a line that runs a job each hour, or without it. All other lines stay as they are. Pure. */
function withCronLine(text: string, job: Job | undefined): string {
  const lines = text.split(/(?<=\n)/);
  const others = lines.filter((line) => !line.trimEnd().endsWith(mark));
  const own = lines.filter((line) => !others.includes(line));
  const line = job === undefined ? '' : cronLine(job);
  if (own.join('') === line) return text;
  const rest = others.join('');
  return line === '' || rest === '' || rest.endsWith('\n') ? rest + line : `${rest}\n${line}`;
}

/** Not at the full hour, at which all others start. */
const minute = 17;

function cronLine({ command, env }: Job): string {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${shellWord(value)}`);
  const words = [...variables, ...command.map(shellWord)].join(' ');
  // To cron a percent sign is the end of the line.
  return `${minute} * * * * ${words.replaceAll('%', '\\%')} >/dev/null 2>&1 ${mark}\n`;
}

function crontab(run: Runs): Place {
  const where = 'the crontab of this user';
  const read = (): string => {
    const ran = run('crontab', ['-l']);
    if (ran === undefined) throw unusable('read', 'there is no crontab program');
    const { code, stdout, isText, stderr } = ran;
    // What is no text would be lost when it is written back.
    if (code === 0 && !isText) throw unusable('change', 'it is no text in UTF-8');
    if (code === 0) return stdout;
    if (/no crontab/i.test(stderr)) return '';
    throw unusable('read', stderr);
  };
  const unusable = (act: string, why: string) =>
    new ConfigError('CLI_BAD_CONFIG', `cannot ${act} ${where}: ${why.trim()}`, { data: { config: where } });
  return {
    where,
    read,
    write: async (_act, change) => {
      const { code, stderr } = run('crontab', ['-'], await change(read())) ?? { code: 127, stderr: '' };
      if (code !== 0) throw unusable('write', stderr);
    },
  };
}
