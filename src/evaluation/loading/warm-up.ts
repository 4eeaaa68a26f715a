// V8 compiles a function when it is first called, which is no part of the time that a policy has for a review.
import { EngineError, FUEL_PER_SECOND, type PolicyGuest } from '../../engine/index.ts';
import type { CompiledPolicyModule } from '../compiled-module.ts';

/** Fuel of {@link warmUp} by the size of the code, so that small code cannot take long. Policies in Go take up to 33 units per byte. */
const WARM_UP_FUEL_PER_BYTE = 40;
/**
 * Evaluation time whose fuel {@link warmUp} has at most, because other loads wait meanwhile. Of the modules
 * of `npm run conformance -- modules`, Kubernetes' CEL in Go takes most: 81 % of it.
 */
const WARM_UP_SECONDS = 0.01;
const WARM_UP_ANSWER_BYTES = 1024 * 1024;
/**
 * Time to compile the functions of a first call, by the size of the code: 15 ms per MiB, of which a busy machine makes 20 times
 * as much. Milliseconds.
 */
const COLD_MS_PER_MIB = 300;
const MIB = 2 ** 20;

/** A module of WebAssembly. */
export type CompiledCode = Extract<CompiledPolicyModule, { readonly compiled: unknown }>;

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
  return 'compiled' in module ? (module.compiled.shape.codeBytes / MIB) * COLD_MS_PER_MIB : 0;
}

function fuelFor({ mode, compiled }: CompiledCode): number {
  return Math.min(compiled.shape.codeBytes * WARM_UP_FUEL_PER_BYTE, WARM_UP_SECONDS * FUEL_PER_SECOND[mode]);
}

/** Has the code of a review compiled, by one review whose outcome does not matter. All threads share compiled code. */
export function warmUp(guest: PolicyGuest, module: CompiledCode, settingsJson: string): void {
  try {
    guest.validate(
      { requestJson: REQUEST, settingsJson, isRaw: false },
      {
        limits: { fuel: fuelFor(module), answerBytes: WARM_UP_ANSWER_BYTES },
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
