export const hooks = {
  /** Gives TypeDoc a compiler of its own: it needs the JavaScript API, which the native TypeScript 7 does not have. */
  readPackage(manifest) {
    if (manifest.name !== 'typedoc') return manifest;
    const { typescript: _, ...peerDependencies } = manifest.peerDependencies;
    return {
      ...manifest,
      peerDependencies,
      dependencies: { ...manifest.dependencies, typescript: '~6.0.3' },
    };
  },

  /**
   * What is packed differs from the workspace in one thing: no entry point leads to TypeScript.
   * Node.js strips no types below node_modules, so that `--conditions=@tapedeck/source` would fail there.
   */
  beforePacking(manifest) {
    for (const entry of Object.values(manifest.exports)) delete entry['@tapedeck/source'];
    return manifest;
  },
};
