                                            

/** A call of a method of a store. */
                            
                                      
                          
                                    
                                                                    
                              
                                       
                                                          
 

/**
 * Returns a store whose calls all go through `around`, which returns the answer: to wait, to retry, to count or
 * to refuse. Settings and the methods themselves stay those of the wrapped store.
 */
export function wrapStore                         (
  store       ,
  around                              ,
)        {
  return wrapped(store, '', around);
}

/** The names of the groups of methods. What else a store has, such as the state of its graph file, is no group. */
const groupNames                                = {
  sessions: true,
  entries: true,
  views: true,
  history: true,
  lineage: true,
  leases: true,
  inbox: true,
  live: true,
  imports: true,
};

              
                                                                                               
           
                                                 
            
              
                   

function wrapped                  (target   , path        , around                              )    {
  const groups = new Map                     ();
  return new Proxy(target, {
    get: (_, property) => {
      const value          = Reflect.get(target, property, target);
      if (typeof value === 'function') {
        const method = path + String(property);
        const actWith = (args                    ) => Reflect.apply(value, target, args);
        return (...args                    ) => around({ method, args, act: () => actWith(args), actWith });
      }
      const isGroup = path === '' && Object.hasOwn(groupNames, property);
      if (!isGroup || typeof value !== 'object' || value === null) return value;
      const group = groups.get(property) ?? wrapped(value, `${String(property)}.`, around);
      groups.set(property, group);
      return group;
    },
    set: (_, property, value) => Reflect.set(target, property, value, target),
  });
}
