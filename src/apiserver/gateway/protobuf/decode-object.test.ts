import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ProtobufDecoder } from './decode-object.ts';
import { kubernetesMessages } from './message-data.ts';
import { WireError } from './wire-reader.ts';

const decoder = new ProtobufDecoder(kubernetesMessages());

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
}

const number = (field: number, value: number): Buffer => Buffer.concat([varint(field << 3), varint(value)]);

function bytes(field: number, ...parts: readonly (Buffer | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  return Buffer.concat([varint((field << 3) | 2), varint(content.length), content]);
}

const object = (apiVersion: string, kind: string, ...fields: readonly Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from('k8s\0'),
    bytes(1, bytes(1, apiVersion), bytes(2, kind)),
    bytes(2, ...fields),
    bytes(3),
    bytes(4),
  ]);

/** The body that kubectl 1.32 sends for `create configmap a --from-literal=x=y`. It contains empty fields of metadata. */
const metadata = (name: string): Buffer =>
  bytes(1, bytes(1, name), bytes(2), bytes(3), bytes(4), bytes(5), bytes(6), number(7, 0), bytes(8));

describe('objects in protobuf', () => {
  it('are read as JSON would have them', () => {
    const map = (key: string, value: string): Buffer => bytes(2, bytes(1, key), bytes(2, value));
    assert.deepEqual(decoder.decode(object('v1', 'ConfigMap', metadata('a'), map('x', 'y'), map('__proto__', 'z'))), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a' },
      data: JSON.parse('{"x":"y","__proto__":"z"}') as object,
    });
    assert.deepEqual(
      decoder.decode(object('v1', 'Secret', metadata('a'), bytes(2, bytes(1, 'k'), bytes(2, 'value')))),
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'a' },
        data: { k: 'dmFsdWU=' },
      },
    );
  });

  it('have numbers or texts for ports, quantities as text, and sources of volumes in the volume', () => {
    const port = bytes(
      1,
      bytes(1),
      bytes(2, 'TCP'),
      number(3, 80),
      bytes(4, number(1, 1), number(2, 0), bytes(3, 'http')),
    );
    const service = decoder.decode(object('v1', 'Service', metadata('s'), bytes(2, port)));
    assert.deepEqual(service['spec'], { ports: [{ name: '', protocol: 'TCP', port: 80, targetPort: 'http' }] });
    const limits = bytes(1, bytes(1, 'cpu'), bytes(2, bytes(1, '100m')));
    const container = bytes(2, bytes(1, 'main'), bytes(8, limits));
    const volume = bytes(1, bytes(1, 'v'), bytes(2, bytes(2, bytes(1, 'Memory'))));
    const pod = decoder.decode(object('v1', 'Pod', metadata('p'), bytes(2, volume, container, number(5, -3))));
    assert.deepEqual(pod['spec'], {
      volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }],
      containers: [{ name: 'main', resources: { limits: { cpu: '100m' } } }],
      activeDeadlineSeconds: -3,
    });
  });

  it('are rejected when they are malformed', () => {
    for (const body of ['', '{}', 'k8s\0', 'k8s\0\xff']) {
      assert.throws(() => decoder.decode(Buffer.from(body, 'latin1')), WireError);
    }
    assert.throws(() => decoder.decode(object('v1', 'Nothing')), /no kind "Nothing" is registered for version "v1"/);
    const whole = object('v1', 'ConfigMap', metadata('a'));
    assert.throws(() => decoder.decode(whole.subarray(0, 40)), WireError);
  });

  it('are decoded or rejected, for arbitrary bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom('Pod', 'ConfigMap', 'Service'),
        (content, kind) => {
          try {
            decoder.decode(object('v1', kind, Buffer.from(content)));
          } catch (error) {
            assert.ok(error instanceof WireError, String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
