import { defineConfig } from 'vite';

/**
 * The page of `tape ui` as three files with fixed names, which the server and exported files take as they are. Nothing is
 * inlined into the HTML, since the server allows no inline code.
 */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  // No file is copied as it is.
  publicDir: false,
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../ui-dist',
    // Its three files are written anew each time: who reads them meanwhile, such as a test beside one that packs, finds them.
    emptyOutDir: false,
    // light-dark(), and colours in oklch.
    target: ['chrome123', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: false,
        entryFileNames: 'page.js',
        assetFileNames: ({ names: [name = ''] }) => (name.endsWith('.css') ? 'page.css' : '[name][extname]'),
      },
    },
  },
});
