import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.filename);

/**
 * Loads the addon of better-sqlite3, for the bundle, which has the JavaScript of that package: the addon that was built
 * on this machine, else the prebuilt one. Linux has two: that for musl is loaded where the other one cannot be.
 */
export function addon(): unknown {
  const dir = packageDir();
  const own = join(dir, 'build/Release/better_sqlite3.node');
  if (existsSync(own)) return require(own);
  const { platform, arch } = process;
  try {
    return require(join(dir, `prebuilds/${platform}-${arch}.node`));
  } catch (error) {
    const musl = join(dir, `prebuilds/${platform}musl-${arch}.node`);
    if (!existsSync(musl)) throw error;
    return require(musl);
  }
}

/** The directory of the package. The search of Node.js takes 2 ms more, for code that resolves any name. */
function packageDir(): string {
  let at = import.meta.dirname;
  // Yarn can keep packages in archives.
  while (process.versions.pnp === undefined && at !== dirname(at)) {
    const dir = join(at, 'node_modules/better-sqlite3');
    if (existsSync(join(dir, 'package.json'))) return dir;
    at = dirname(at);
  }
  return dirname(require.resolve('better-sqlite3/package.json'));
}
