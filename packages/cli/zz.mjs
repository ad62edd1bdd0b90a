import { registerHooks } from 'node:module';

const seen = new Set();
registerHooks({
  resolve(s, c, n) {
    const r = n(s, c);
    seen.add(r.url);
    return r;
  },
});
await import('@tapedeck/tape');
const before = new Set(seen);
const c = process.cpuUsage();
await import('@tapedeck/runtime');
const d = process.cpuUsage(c);
const now = [...seen].filter((u) => !before.has(u) && !u.startsWith('node:'));
console.log(now.length, (d.user + d.system) / 1000);
const by = {};
for (const u of now) {
  const k = u.replace(/.*\/(packages\/[^/]+\/dist\/[^/]+|node_modules\/[^/]+).*/, '$1');
  by[k] = (by[k] ?? 0) + 1;
}
console.log(by);
console.log([...seen].filter((u) => !before.has(u) && u.startsWith('node:')).join(' '));
