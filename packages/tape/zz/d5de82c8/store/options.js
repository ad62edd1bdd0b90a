                                             
import {                                               kindFault, optionFault } from '../entry/fields.js';
import { quote } from '../entry/name.js';
import { TapeError } from '../errors.js';
                                                                
                                                                 
                                                      
                                                       
                                                   
                                         
                                                      
                                                       
                                                                               
                                                     
                                                   
                                                   
                                                    
                                              
                                              
                                                              
                                                    

/** Selects entries of a session. */
                                              
                                                    
                         
 

/** Selects a part of a blob. */
                            
                                    
                         
                                                       
                       
 

/** Selects the entries of a view. */
                            
                               
                                                           
                      
 

/** Selects ranges of a session. */
                             
                                                                 
                      
                                                                                                           
                      
 

/** Options of every method that writes to a session. */
                               
                                                                                                             
                                     
 

/** Options of `entries.append`. */
                                                     
                                                                                          
                                    
     
                                                 
                                                               
     
                                           
     
                                                                                                             
                                 
     
                                        
 

/** Options of `history.rewind`. */
                                                     
                                                              
                                     
 

/** Options of `history.unrewind`. */
                                                       
                                                            
                                    
 

/** Options of `leases.acquire` and `leases.extend`. */
                               
                                                                                        
                                      
 

/** Options of `leases.release`. */
                                 
                                                               
                                        
 

/** Options of `inbox.drain`. */
                               
                                                                                                      
                                          
                                           
                                     
 

/** The type of each options object that a method of a store takes, by method. */
                     
                               
                                
                               
                                   
                                  
                             
                            
                                
                             
                             
                                  
                                      
                               
                              
                              
                                 
                                   
                           
                              
                         
                             
               
               
               
                       
                 
                      
                            
 

/** The fields of every options object that a method of a store takes, by method. */
export const fieldsOf                                                            = {
  'sessions.open': { kind: 'text', title: 'text', ephemeral: 'flag', settings: 'object' },
  'sessions.list': {
    kind: 'text',
    lifecycle: true,
    parent: 'text',
    roots: 'flag',
    prefix: 'text',
    leftFrom: 'count',
    key: 'text',
    since: 'count',
    under: 'text',
    unfinished: 'flag',
    pending: 'flag',
    all: 'flag',
    allRealms: 'flag',
    after: true,
    limit: 'count',
    counts: 'flag',
  },
  'sessions.calls': { session: 'text', tree: 'flag' },
  'sessions.update': { lifecycle: true, task: true, alias: 'object', unalias: 'object' },
  'entries.append': { lease: 'object', key: 'text', expectHead: 'text', settles: 'text' },
  'entries.read': {
    from: 'count',
    to: 'count',
    since: true,
    kind: 'text',
    name: 'text',
    namePrefix: 'text',
    calls: 'flag',
    own: 'flag',
    last: 'count',
    limit: 'count',
  },
  'entries.blob': { from: 'count', to: 'count' },
  'entries.search': { text: 'text', session: 'text', kind: 'text', limit: 'count', all: 'flag' },
  'views.entries': { policy: true, at: true },
  'views.ranges': { at: true, from: 'count' },
  'history.rewind': { lease: 'object', mode: 'text' },
  'history.unrewind': { lease: 'object', rewind: 'count' },
  'lineage.read': { session: 'text', types: 'texts', from: 'count' },
  'lineage.fork': {
    inherit: true,
    cut: true,
    name: 'text',
    key: 'text',
    intention: 'object',
    kind: 'text',
    deliver: ['merge', 'merge+turn', 'notify', 'tool-result'],
    spawnCall: 'text',
    settings: 'object',
    terms: 'object',
    asked: 'object',
    worktree: 'object',
    title: 'text',
    ephemeral: 'flag',
    whenIdle: 'flag',
    whereShown: 'flag',
    done: 'object',
  },
  'lineage.merge': {
    child: 'text',
    into: 'text',
    strategy: true,
    text: 'text',
    status: true,
    reason: 'text',
    context: 'flag',
    onConflict: ['report', 'refuse'],
    force: 'flag',
    charsMax: 'count',
    notify: 'flag',
    at: ['step', 'idle'],
    usage: 'object',
    asked: 'object',
    written: 'texts',
  },
  'leases.acquire': { ttlMs: 'duration' },
  'leases.release': { inputs: 'flag' },
  'inbox.post': { body: true, mode: 'text', source: 'text', key: 'text' },
  'inbox.drain': { taken: 'list', later: 'texts' },
  'live.read': { run: 'text', from: true },
  'imports.stage': { kind: 'text', title: 'text', ephemeral: 'flag', settings: 'object', keys: 'texts' },
  alias: { name: 'text', reason: 'text' },
  intention: { nextSteps: 'text', contextSummary: 'text', triggerOnComplete: 'text' },
  done: { drafts: 'list', task: true },
  write: { lease: 'object' },
  progress: { onProgress: true },
  lease: { session: 'text', id: 'text', owner: 'text', epoch: 'count', expiresAt: 'count' },
  owner: { id: 'text', pid: 'count', pidStart: 'text', bootId: 'text', pidNamespace: 'text', host: 'text' },
};

/**
 * Refuses an argument of another kind.
 * @param what the argument: `the lease`
 * @throws TAPE_BAD_OPTION
 */
export function assertArgument(value         , kind          , act        , what        )       {
  const words = kindFault(value, kind);
  if (words !== undefined)
    throw new TapeError('TAPE_BAD_OPTION', `cannot ${act}: ${what} must be ${words}`, { data: { near: [] } });
}

/**
 * Refuses options with a field that does not exist, or a value that a field cannot have; both would otherwise
 * be ignored.
 * @param act what cannot be done: `append to`
 * @param to the session, or other object, of the act; a function is called for an error alone
 * @throws TAPE_BAD_OPTION; `data.field` names the field, `data.near` has the nearest names
 */
export function assertOptions(
  options        ,
  known             ,
  act        ,
  to                          ,
)       {
  const fault = optionFault(options, known);
  if (fault === undefined) return;
  const { why, ...data } = fault;
  const what = to === undefined ? act : `${act} ${quote(String(typeof to === 'function' ? to() : to))}`;
  throw new TapeError('TAPE_BAD_OPTION', `cannot ${what}: ${why}`, { data });
}
