                                              
import { googleFiles, returnsToGoogle } from './google.js';

/** The model that a view is for. */
                         
     
                                                                                                            
     
                             
                                                                     
                              
 

/** What a target accepts. Providers, or their AI SDK packages, reject everything else. */
                          
                                                                                   
                                        
                                                               
                                          
     
                                                                                                           
          
     
                         
                                                                                                      
                               
                                                                         
                              
                                                                                                    
                           
                                                                               
                                            
                                                                    
                            
                                                                                
                                  
                                                                                       
                             
                                                                                                   
                               
                                                                                         
                         
                              
                                                        
                        
                                                      
                               
                                             
                             
 

const noFiles = /^(?!)/;
const web = /^https?:/i;
const all = /^/;
const images = 'image(?:/(?:\\*|png|jpe?g|gif|webp))?';

                                                                    

const generic        = {
  chat: false,
  alternates: false,
  checksIds: false,
  pauses: true,
  returns: () => true,
  customs: true,
  oneResultText: false,
  ownFiles: true,
  blankTexts: true,
  files: all,
  plainFiles: all,
  urls: all,
  resultFiles: all,
};

const anthropic        = {
  ...generic,
  checksIds: true,
  ownFiles: false,
  urls: web,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|text/plain)$`),
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openai        = {
  ...generic,
  checksIds: true,
  pauses: false,
  ownFiles: false,
  urls: web,
  files: new RegExp(`^(?:${images}|application/pdf)$`),
  plainFiles: noFiles,
  resultFiles: new RegExp(`^(?:${images}|application/pdf)$`),
};

const openaiChat        = {
  ...openai,
  chat: true,
  customs: false,
  blankTexts: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg))$`),
  resultFiles: noFiles,
};

const otherChat        = {
  ...openaiChat,
  alternates: true,
  checksIds: false,
  files: new RegExp(`^(?:${images}|application/pdf|audio/(?:wav|mp3|mpeg)|video/.+|text/.+)$`),
  plainFiles: /^text\//,
};

const google        = {
  ...generic,
  pauses: false,
  returns: returnsToGoogle,
  customs: false,
  oneResultText: true,
  files: googleFiles,
  plainFiles: noFiles,
  urls: web,
  resultFiles: /^(?:image\/(?:png|jpeg|webp|heic|heif)|application\/pdf)$/,
};

/** Returns what a target accepts. For an unknown provider, this is what its AI SDK package accepts. */
export function dialectOf({ provider: name, textOnly = false }        )          {
  const provider = providerKey(name);
  const rules = rulesOf(name?.split('.') ?? []);
  // The packages for servers of open models read these options under one name.
  const shared = rules === otherChat ? ['openaiCompatible'] : [];
  return {
    ...rules,
    ...(textOnly && { files: noFiles, plainFiles: noFiles, resultFiles: noFiles }),
    textOnly,
    provider,
    optionNames: provider === undefined ? [] : [provider, ...(aliases[provider] ?? []), ...shared],
  };
}

/** Parts of an AI SDK name: the provider, optionally the maker of the models, then the API. */
function rulesOf(name                   )        {
  const [provider = ''] = name;
  const chat = name.at(-1) === 'chat';
  if (name.includes('anthropic')) return anthropic;
  if (provider === 'openai' || provider === 'azure') return chat ? openaiChat : openai;
  // Google's Vertex AI names its own API `chat` too.
  if (provider === 'google') return name[1] === 'vertex' ? { ...google, urls: /^(?:https?|gs):/i } : google;
  return chat ? otherChat : generic;
}

/** Returns the provider without its API: `anthropic.messages` and `anthropic` are one provider. */
export function providerKey(provider                    )                     {
  return provider?.split('.')[0];
}

/** Other names under which a provider reads its options. */
const aliases                                              = {
  'amazon-bedrock': ['bedrock'],
  azure: ['openai'],
  google: ['vertex'],
  vertex: ['anthropic', 'google'],
};
