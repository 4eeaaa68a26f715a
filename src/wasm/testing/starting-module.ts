import { wat } from './wat.ts';

/** Pages that the start writes to, more than caches hold; its answers are behind them. */
const PAGES = 512;
const ANSWERS = PAGES * 65_536;

/**
 * A waPC guest that accepts everything, and whose start function reads and writes at random addresses, which takes far longer
 * than other instructions with as much fuel: 800,000 turns take 1.2 s on an idle machine, and almost all fuel of a start.
 * @param salt makes the module distinct
 */
export function startingModule(turns: number, salt = 0): Uint8Array {
  const address = `(i32.and (i32.shr_u (local.get $x) (i32.const 5)) (i32.const ${ANSWERS - 4}))`;
  const step = `
    (local.set $x (i32.add (i32.mul (local.get $x) (i32.const 1664525)) (i32.const 1013904223)))
    (local.set $x (i32.add (local.get $x) (i32.load ${address})))
    (i32.store ${address} (local.get $x))`;
  const answer = (at: number, length: number): string =>
    `(call $respond (i32.const ${ANSWERS + at}) (i32.const ${length})) (return (i32.const 1))`;
  return wat(`(module
    (import "wapc" "__guest_response" (func $respond (param i32 i32)))
    (memory (export "memory") ${PAGES + 1})
    (data (i32.const ${ANSWERS}) "{\\"accepted\\":true}{\\"valid\\":true}\\"v1\\"${salt}")
    (start $work)
    (func $work (local $n i32) (local $x i32)
      (loop $again
        ${step.repeat(16)}
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const ${turns})))))
    (func (export "__guest_call") (param $operation i32) (param i32) (result i32)
      (if (i32.eq (local.get $operation) (i32.const 16)) (then ${answer(31, 4)}))
      (if (i32.eq (local.get $operation) (i32.const 17)) (then ${answer(17, 14)}))
      ${answer(0, 17)}))`);
}
