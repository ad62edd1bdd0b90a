                                             

/** Damage and its place. `session` owns the damaged entry; `seq` is null when no single entry is damaged. */
                          
                                                            
                
                     
                     
                    
                  
                         
                    
                  
                   
                   
                         
                        
                     
                    
                          
                         
                           
                      
                     
                   
                    
                         
                                  
                           
                           
 

/** Makes a problem of one session. */
                                                                                                 

export function problemsOf(session        )                {
  return (code, seq, message) => ({ code, session, seq, message });
}
