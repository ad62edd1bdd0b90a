import { createRequire } from 'node:module';

/** A rule of the package, as far as it is used. */
                              
                                         
                                                                                                         
 

/** Loads the package with the rules. It is a module of 230 KB, which takes as long as a start of the command. */
export function rulesOfPackage()                         {
  const require = createRequire(import.meta.url);
  return require('@secretlint/secretlint-rule-preset-recommend').rules;
}
