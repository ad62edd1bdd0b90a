import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { page, root } from './pages.ts';

interface Compose {
  readonly services: Readonly<
    Record<
      string,
      {
        readonly image: string;
        readonly command?: readonly string[];
        readonly healthcheck: { readonly test: readonly string[] };
        readonly depends_on?: object;
      }
    >
  >;
  readonly volumes: object;
}

test('the files of workers for Docker and systemd are well formed, and start and probe tape worker', () => {
  const { services, volumes } = parse(page('docs/workers/compose.yaml')) as Compose;
  expect(Object.keys(services)).toEqual(['postgres', 'worker']);
  expect(services.worker?.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  expect(services.worker?.command).toEqual(['tape', 'worker']);
  expect(services.worker?.healthcheck.test).toEqual(['CMD', 'tape', 'worker', '--health']);
  expect(volumes).toEqual({ data: null });
  const unit = join(root, 'docs/workers/tape-worker.service');
  const verified = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
  // What the machine lacks, such as /srv/project, is no fault of the file.
  if (verified.error === undefined) expect(verified.stderr).not.toMatch(/tape-worker\.service:\d+/);
  expect(page('docs/workers/tape-worker.service')).toMatch(/^ExecStart=.* tape worker$/m);
});
