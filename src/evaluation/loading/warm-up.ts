// V8 compiles a function when it is first called, which is no part of the time that a policy has for a review.
import { EngineError, type PolicyGuest } from '../../engine/index.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';

/**
 * Fuel of {@link warmUp} by the size of the code, so that small code cannot take long. A review by policies of Rust takes 1 unit
 * for each byte, by those of Go 30.
 */
const WARM_UP_FUEL_PER_BYTE = 40;
const WARM_UP_ANSWER_BYTES = 1024 * 1024;
/**
 * Time to compile the functions of a first call, by the size of the code: 15 ms per MiB, of which a busy machine makes 20 times
 * as much. Milliseconds.
 */
const COLD_MS_PER_MIB = 300;
const MIB = 2 ** 20;

/** A request as policies get most: one that needs no answers of the host. */
const REQUEST = Buffer.from(
  JSON.stringify({
    uid: '00000000-0000-0000-0000-000000000000',
    kind: { group: '', version: 'v1', kind: 'Pod' },
    resource: { group: '', version: 'v1', resource: 'pods' },
    name: 'example',
    namespace: 'default',
    operation: 'CREATE',
    userInfo: { username: 'system:anonymous', groups: [] },
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'example', namespace: 'default' },
      spec: { containers: [{ name: 'example', image: 'example' }] },
    },
    oldObject: null,
    dryRun: true,
  }),
);

/** Additional time for the first call of a module in a process. Milliseconds. */
export function coldMs(module: CompiledPolicyModule): number {
  return (bytesOf(module) / MIB) * COLD_MS_PER_MIB;
}

function bytesOf(module: CompiledPolicyModule): number {
  return 'compiled' in module ? module.compiled.shape.rewrittenBytes : 0;
}

/** Has the code of a review compiled, by one review whose outcome does not matter. All threads share compiled code. */
export function warmUp(guest: PolicyGuest, module: CompiledPolicyModule, settingsJson: string): void {
  try {
    guest.validate(
      { requestJson: REQUEST, settingsJson, isRaw: false },
      {
        limits: { fuel: bytesOf(module) * WARM_UP_FUEL_PER_BYTE, answerBytes: WARM_UP_ANSWER_BYTES },
        log: () => undefined,
        hostCall: () => {
          throw new EngineError('capability-refused', 'this review is a trial, without answers of the host');
        },
      },
    );
  } catch {
    // What is wrong with the policy shows in its first review.
  }
}
