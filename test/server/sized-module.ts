import { writeMetadata } from '../../src/modules/index.ts';
import { wat } from '../../src/wasm/testing/wat.ts';

export interface ModuleSize {
  /** Distinguishes modules of one size. 0 to 9. */
  readonly seed: number;
  /** Pages that its start function fills: memory of each instance. */
  readonly filledPages: number;
  /** Bytes of data in the module: memory of its code. Default: none. */
  readonly dataBytes?: number;
}

/** A policy that admits everything, and holds as much memory as a test needs. */
export function sizedModule({ seed, filledPages, dataBytes = 0 }: ModuleSize): Uint8Array {
  const module = wat(`(module
    (import "wapc" "__guest_response" (func $respond (param i32 i32)))
    (memory (export "memory") ${Math.max(1, filledPages)}) (start $go)
    (data $answers "\\22v1\\22{\\22valid\\22:true}{\\22accepted\\22:true}")
    (data $padding "${String(seed).repeat(dataBytes)}")
    (func $go (memory.fill (i32.const 0) (i32.const ${seed}) (i32.const ${filledPages * 65_536})))
    (func $answer (param $from i32) (param $length i32)
      (memory.init $answers (i32.const 1024) (local.get $from) (local.get $length))
      (call $respond (i32.const 1024) (local.get $length)))
    ;; The operation is known by the length of its name: validate, protocol_version, validate_settings.
    (func (export "__guest_call") (param $operation i32) (param i32) (result i32)
      (if (i32.eq (local.get $operation) (i32.const 16)) (then (call $answer (i32.const 0) (i32.const 4))))
      (if (i32.eq (local.get $operation) (i32.const 17)) (then (call $answer (i32.const 4) (i32.const 14))))
      (if (i32.eq (local.get $operation) (i32.const 8)) (then (call $answer (i32.const 18) (i32.const 17))))
      (i32.const 1)))`);
  return writeMetadata(module, {
    protocolVersion: 'v1',
    executionMode: 'kubewarden-wapc',
    rules: [],
    annotations: {},
    mutating: false,
    backgroundAudit: true,
    policyType: 'kubernetes',
    contextAwareResources: [],
    hostCapabilities: [],
  });
}
