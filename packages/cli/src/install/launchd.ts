import { join } from 'node:path';
import { shellWord } from '../escape.ts';
import type { Job, Runs, Timer } from './job.ts';
import { isOwnFile, ownMark, ownText } from './own-text.ts';
import { fileAt } from './place.ts';

const label = 'tapedeck.import';

/** An agent of macOS, in the directory of a user's agents. */
export function launchdTimer(directory: string, run: Runs): Timer {
  const file = join(directory, `${label}.plist`);
  const domain = `gui/${process.getuid?.() ?? ''}`;
  const stop = () => void run('launchctl', ['bootout', `${domain}/${label}`]);
  return {
    name: 'launchd',
    isHere: () => run('launchctl', ['version']) !== undefined,
    isWritten: () => isOwnFile(file),
    homeIn: () => {
      const [, text] = /<string>--home<\/string>\s*<string>([^<]*)<\/string>/.exec(fileAt(file).read()) ?? [];
      return text?.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
    },
    parts: (job) => [
      { place: fileAt(file, { isOwn: true }), change: ownText(job === undefined ? '' : agentText(job)) },
    ],
    start: () => {
      // One that is loaded stays as it was when it was loaded.
      stop();
      const started = run('launchctl', ['bootstrap', domain, file]);
      if (started?.code === 0) return undefined;
      const command = `launchctl bootstrap ${domain} ${shellWord(file)}`;
      return { why: started?.stderr.trim() ?? 'there is no launchctl', command };
    },
    stop,
  };
}

/**
 * The property list of an agent that runs a job each hour while its user is there. An instruction has the mark: no comment of
 * XML can have two hyphens in a row. Pure.
 */
function agentText({ command, env }: Job): string {
  const strings = command.map((word) => `    <string>${escaped(word)}</string>\n`);
  const variables = Object.entries(env).map(
    ([name, value]) => `    <key>${escaped(name)}</key>\n    <string>${escaped(value)}</string>\n`,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<?written-by ${ownMark}?>
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${label}</string>
  <key>ProgramArguments</key>
  <array>
${strings.join('')}  </array>
${variables.length === 0 ? '' : `  <key>EnvironmentVariables</key>\n  <dict>\n${variables.join('')}  </dict>\n`}  <key>StartInterval</key>
  <integer>3600</integer>
  <key>ProcessType</key>
  <string>Background</string>
</dict>
</plist>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
