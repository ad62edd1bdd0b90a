import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mountPoint, unmount, unmountLeft } from './mounts.ts';
import { tempDir } from './temp-dir.ts';

/** A file system of its own in a file, mounted until the block ends. */
export interface LoopDisk extends Disposable {
  /** Where it is mounted. */
  readonly path: string;
  /**
   * What a power cut would leave now: the bytes that reached the device, mounted anew. Processes that write the disk
   * must be stopped meanwhile.
   */
  cut(): LoopDisk;
}

const mebibytes = 48;

/**
 * Makes and mounts an ext4 disk; nothing is written back to it by time alone, so a run does not depend on its moment.
 */
export function loopDisk(dir: string): LoopDisk {
  mkdirSync(dir, { recursive: true });
  const image = join(dir, 'image');
  writeFileSync(image, '');
  truncateSync(image, mebibytes * 1024 * 1024);
  run('mkfs.ext4', '-q', '-F', image);
  return mountImage(image, mountPoint(dir, 'disk'));
}

function mountImage(image: string, path: string): LoopDisk {
  mkdirSync(path);
  // The loop device goes away with the mount.
  run('mount', '-t', 'ext4', '-o', 'loop,commit=300', image, path);
  mounted.add(path);
  return {
    path,
    cut: () => {
      const copy = `${image}.cut`;
      copyFileSync(image, copy);
      return mountImage(copy, mountPoint(dirname(path), 'cut'));
    },
    [Symbol.dispose]: () => {
      mounted.delete(path);
      unmount(path);
    },
  };
}

/** Whatever happens to the tests, no mount outlives them; one that a kill left goes with the next run. */
const mounted = new Set<string>();
process.on('exit', () => {
  for (const path of mounted) unmount(path);
});

function run(program: string, ...args: readonly string[]): void {
  const { error, status, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  });
  if (error !== undefined) throw new Error(`there is no ${program}`);
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}

/** Why there can be no loop disks here, or undefined when there can. */
export function loopFault(): string | undefined {
  unmountLeft();
  using dir = tempDir();
  try {
    using _ = loopDisk(dir.file('disk'));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
