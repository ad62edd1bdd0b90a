/**
 * Stores. `TapeStore` below is what all of them promise: nine groups of methods, one for each thing that a home of
 * tapes has. `sqlite.ts` implements it with one file for each group (`entries.ts` is `store.entries`), each method by
 * an act of the other rooms in one transaction, on the `connection.ts` that they share; `options.ts` has the options of
 * the methods; the rest opens, migrates, backs up and checks the database file. Imports `check`, `inbox` and what
 * lies below.
 */
                                                   
                                                                      
                                              
                                                      
                                                     
                                                    
                                                               
                                                                    
                                                       
                                                     
                                                                 
                                                  
                                         
                                                      
                                                                     
                                                                        
                                                     
                                                  
                                                               
                                                                        
                                                                 
                                                        
                                                            
                                              
                                           
             
                
            
               
             
               
             
                 
                
                  
            
               
                      
                                                              

/** Items that a method yields page by page. No statement or lock stays open between pages. */
                                                         

/**
 * The tapes of one home. `SqliteTapeStore` returns plain values; other stores may return promises.
 * @throws TAPE_NO_SESSION from every method that takes a session, when no session has that name, alias or id;
 * TAPE_BAD_OPTION from every method that takes an object of options, for a field that does not exist
 *
 * @example
 * ```ts
 * import { openTapeStore, type TapeStore, user } from '@tapedeck/tape';
 *
 * // Every store can answer later: await what its methods return, and read sequences with `for await`.
 * async function say(store: TapeStore, session: string, text: string): Promise<number> {
 *   await store.sessions.open(session);
 *   return (await store.entries.append(session, [user(text)])).to;
 * }
 *
 * console.log(await say(openTapeStore(':memory:'), 'main', 'Plan the release.')); // 2
 * ```
 */
                                                    
                                                             
                              
                                                                         
                            
                                        
                        
                                                                          
                            
                                                                            
                            
                                                                  
                          
                                                                     
                        
                                                                                      
                      
                                                                          
                            
     
                                                                                                                      
                                             
     
                                                            
                                                                                              
                               
     
                                                                                                  
                                                                                                           
                        
     
                      
 

/**
 * The sessions of a store, `store.sessions`: creates, finds, lists and changes them.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.sessions.update('main', { lifecycle: 'archived' });
 * console.log(store.sessions.find('main')?.lifecycle); // archived
 * ```
 */
                           
     
                                                                                                                  
           
                                                                                                                 
                                              
     
       
                 
                       
                                                                           
                                                                                    
                                                     
                                                                                      
                                                                
     
                                                                                                                         
                                                                                                               
     
                                                              
     
                                                                                         
                                                                                                              
                                                                                                               
                                                    
     
                                                                                                   
 

/**
 * The entries of tapes, `store.entries`: appends, reads, finds and redacts them.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.'), user('Add a changelog.')]);
 * for (const { seq, kind } of store.entries.read('main', { kind: 'message' })) console.log(seq, kind);
 * // 2 message
 * // 3 message
 * console.log(store.entries.search({ text: 'changelog' }).hits[0]?.seq); // 3
 * ```
 */
                          
     
                                                                                                           
                                                                                       
     
                                                                                    
                                          
                                                      
     
                                    
                                                                                   
     
                                                  
     
                                                                                        
                                       
     
                                                               
     
                                                                                                                       
                                                                                              
     
                                                      
     
                                                                                                            
                                                                                                    
                                                                                                
     
                                                                                        
 

/**
 * What a model sees of a session, `store.views`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user, view } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * console.log(view(store.views.entries('main')).messages.length); // 1
 * ```
 */
                        
     
                                                                                                    
                                                                         
     
                                                        
     
                                                                                                           
                                                                  
     
                                                                           
 

/**
 * Rewinds, `store.history`: a tape reads as if it ended earlier. No entry is removed.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const { to } = store.entries.append('main', [user('Plan the release.')]);
 * store.entries.append('main', [user('Add a changelog.')]);
 * console.log(store.history.rewind('main', to).hidden); // 1
 * console.log(store.history.unrewind('main').shown); // 1
 * ```
 */
                          
                                                                                                     
                                                                     
     
                                                                                     
                                                                          
     
                                                              
 

/**
 * Forks and merges, `store.lineage`, and the lines that record them.
 *
 * @example
 * ```ts
 * import { assistant, openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.entries.append('main', [user('Plan the release.')]);
 * store.lineage.fork('main', { name: 'tests' });
 * store.entries.append('tests', [assistant('All tests pass.')]);
 * console.log(store.lineage.merge('tests').state); // merged
 * ```
 */
                          
                                                 
                                                    
     
                                                                                                              
                                                                                                          
               
     
                                                              
                                                                                                    
                                                                          
     
                                                                                            
                                                                                 
     
                                                                                 
                                                                                        
                                                                                       
     
                                                                                                              
                                                                                                  
                                                                                         
     
                                                                            
     
                                                                                                           
                                                                                                            
                        
     
                                                                         
 

/**
 * The right to write a session, `store.leases`. One owner has it at a time.
 *
 * @example
 * ```ts
 * import { openTapeStore, processOwner } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const lease = store.leases.acquire('main', processOwner('editor'));
 * console.log(store.leases.holds(lease), store.leases.list()[0]?.session); // true main
 * store.leases.release(lease);
 * console.log(store.leases.holds(lease)); // false
 * ```
 */
                         
     
                                                                  
                                                
     
                                                                      
     
                                
                                                                      
     
                                                           
                                                                                                         
                                          
                                             
                                             
     
                                                                                                              
                                                                      
     
                                                                
 

/**
 * What other processes want written to a session, or done by its owner: `store.inbox`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * store.inbox.post('main', { body: { type: 'input', drafts: [user('Add a changelog.')] } });
 * console.log(store.inbox.list('main').length); // 1
 * ```
 */
                        
     
                                                                      
                                                                                              
     
                                                      
                                                            
                                                  
     
                                                                                                               
                                                                                                                  
                                                                                                                     
     
                                                                             
 

/**
 * The chunks of answers that are not complete yet, `store.live`.
 *
 * @example
 * ```ts
 * import { openTapeStore } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * store.sessions.open('main');
 * const chunks = [{ index: 0, chunk: { type: 'text-delta', id: '0', delta: 'Test,' } }];
 * store.live.save([{ session: 'main', run: 'run-1', chunks }]);
 * console.log(store.live.read('main')[0]?.chunks.length); // 1
 * ```
 */
                       
                                                                   
                                                        
     
                                                                                                             
                                                                     
     
                                                                   
 

/**
 * Sessions that are written in many transactions and appear in one: `store.imports`.
 *
 * @example
 * ```ts
 * import { openTapeStore, user } from '@tapedeck/tape';
 *
 * using store = openTapeStore(':memory:');
 * const { id } = store.imports.stage('imported');
 * store.imports.append(id, [user('Plan the release.')]);
 * console.log(store.sessions.list().length); // 0
 * store.imports.publish([id]);
 * console.log(store.sessions.list().length); // 1
 * ```
 */
                          
                                                                                                           
                                                                
                                                   
                                                                   
                                                                                                 
                                                                     
 

/** The receipt of `inbox.post`. */
                         
                                                                                                        
                      
                                                              
                         
                                                                                                      
                               
 
