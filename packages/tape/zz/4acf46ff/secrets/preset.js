import { rulesOfPackage } from './rule-package.js';

/** Where a text has a secret. */
                        
                        
                      
                                                         
                        
 

/** What a rule reports: where it found something, and the texts of its message, the secret among them. */
                  
                                                                                              
                                            
 

/** Facts that a rule of the package reports and that are no secrets. */
const harmless                      = new Set(['AWSAccountID']);

/**
 * Loads the rules of `@secretlint/secretlint-rule-preset-recommend`, and returns each as a function from a text to the
 * secrets in it. They are run without the linter, which is asynchronous and reads files.
 */
export function loadRules()            
                        
                                                    
    {
  return rulesOfPackage().map(({ meta, create }) => {
    const name = meta.id.replace('@secretlint/secretlint-rule-', '');
    let reports           = [];
    const context = {
      sharedOptions: {},
      createTranslator: () => (id        , data         ) => ({ id, data: data ?? {} }),
      report: (report        ) => reports.push(report),
      ignore: () => {},
    };
    const { file } = create(context, { enableIDScanRule: true });
    return {
      name,
      find: (text) => {
        reports = [];
        file?.({ content: text, filePath: undefined, ext: '', contentType: 'text' });
        return reports
          .filter(({ message }) => !harmless.has(message.id))
          .map((report) => ({ ...placeOf(report, text), name }));
      },
    };
  });
}

/**
 * Where the secret of a report is. The ranges of some rules begin before the secret, and end as much too early; the
 * message has the secret itself.
 */
function placeOf({ message, range: [from, to] }        , text        )                               {
  let place = { from, to };
  let longest = 0;
  for (const [name, value] of Object.entries(message.data)) {
    if (typeof value !== 'string' || value.length <= longest || name === 'typeName') continue;
    const at = text.indexOf(value, from);
    if (at === -1) continue;
    longest = value.length;
    place = { from: at, to: at + value.length };
  }
  return place;
}
