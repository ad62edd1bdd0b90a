/**
 * What is packed differs from the workspace in one thing: no entry point leads to TypeScript.
 * Node.js strips no types below node_modules, so that `--conditions=@tapedeck/source` would fail there.
 */
export const hooks = {
  beforePacking(manifest) {
    for (const entry of Object.values(manifest.exports)) delete entry['@tapedeck/source'];
    return manifest;
  },
};
