/** How far an act is. */
                           
                        
                                      
                         
 

/** Options of an act that can take long. */
                                  
                                                 
                                   
 

/** Receives how far an act is. An error that it throws ends the act. */
                                                      
