import { lstatSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Job, Runs, Timer } from './job.ts';
import { isOwnFile, ownMark, ownText } from './own-text.ts';
import { fileAt } from './place.ts';

const unit = 'tape-import';

/** A timer of the user's systemd, in a directory of units. */
export function systemdTimer(directory: string, run: Runs): Timer {
  const start = ['--user', 'enable', '--now', `${unit}.timer`];
  const file = (kind: 'service' | 'timer') => join(directory, `${unit}.${kind}`);
  return {
    name: 'systemd',
    // A user without a manager of units, as in a container, has no timers of it.
    isHere: () => run('systemctl', ['--user', 'show-environment'])?.code === 0,
    isWritten: () => (['service', 'timer'] as const).some((kind) => isOwnFile(file(kind))),
    homeIn: () => {
      const [, word] =
        /^ExecStart=.* "--home" "((?:[^"\\]|\\.)*)"$/m.exec(fileAt(file('service')).read()) ?? [];
      return word?.replace(/\\(.)/g, '$1').replaceAll('%%', '%').replaceAll('$$', '$');
    },
    parts: (job) =>
      (['service', 'timer'] as const).map((kind) => ({
        place: fileAt(file(kind), { isOwn: true }),
        change: ownText(job === undefined ? '' : kind === 'timer' ? timerText : serviceText(job)),
      })),
    start: () => {
      const reloaded = run('systemctl', ['--user', 'daemon-reload']);
      const started = reloaded?.code === 0 ? run('systemctl', start) : reloaded;
      if (started?.code === 0) return undefined;
      return {
        why: started?.stderr.trim() ?? 'there is no systemctl',
        command: `systemctl ${start.join(' ')}`,
      };
    },
    stop: () => {
      run('systemctl', ['--user', 'disable', '--now', `${unit}.timer`]);
      // Where no systemd answers, this is what is left of it.
      const link = join(directory, 'timers.target.wants', `${unit}.timer`);
      if (lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() === true) rmSync(link);
    },
  };
}

const about = `# Written by ${ownMark}. Remove it with: tape import --uninstall --timer`;

/** A service that runs a job once. Pure. */
function serviceText({ command: [program = '', ...args], env }: Job): string {
  return `${about}
[Unit]
Description=Import transcripts of agents into a tape home

[Service]
Type=oneshot
${Object.entries(env)
  .map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}\n`)
  .join(
    '',
  )}ExecStart=${[quoted(program), ...args.map((word) => quoted(word).replaceAll('$', '$$$$'))].join(' ')}
Nice=10
`;
}

/** The timer of the service: each hour, not all machines at the same moment, and soon where an hour was slept over. */
const timerText = `${about}
[Unit]
Description=Import transcripts of agents into a tape home each hour

[Timer]
OnCalendar=hourly
RandomizedDelaySec=10min
Persistent=true

[Install]
WantedBy=timers.target
`;

/** One word of a unit. */
function quoted(word: string): string {
  return `"${word.replace(/[\\"]/g, '\\$&').replaceAll('%', '%%')}"`;
}
