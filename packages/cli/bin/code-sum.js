/**
 * The sum of compiled code, in 8 hexadecimal digits: V8 takes damaged code as it is, and crashes. It finds what a disk
 * or a power cut does to a file, and costs a millisecond for 200 KB, less than a hash, which would be loaded first.
 */
module.exports = function sumOf(code) {
  const whole = code.length - (code.length % 4);
  // A view needs an address that four divides.
  const words = new Int32Array(code.buffer.slice(code.byteOffset, code.byteOffset + whole));
  let sum = code.length;
  for (let i = 0; i < words.length; i += 1) sum = (Math.imul(sum ^ words[i], 0x01000193) + (sum >>> 15)) | 0;
  for (const byte of code.subarray(whole)) sum = (Math.imul(sum ^ byte, 0x01000193) + (sum >>> 15)) | 0;
  return (sum >>> 0).toString(16).padStart(8, '0');
};
