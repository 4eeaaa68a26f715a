import { object, optional, text, time } from '../schema-builder.ts';
import { CONDITIONS, PORTCULLIS_GROUP } from '../kind-declarations/common-schemas.ts';
import { AGE_COLUMN, column, ownKind } from '../kind-declarations/own-kind.ts';
import type { KindDeclaration, ObjectOfKind } from '../kind-declarations/own-kind.ts';

const controllerReplica = {
  group: PORTCULLIS_GROUP,
  version: 'v1',
  kind: 'ControllerReplica',
  plural: 'controllerreplicas',
  shortNames: [],
  categories: ['portcullis'],
  scope: 'Namespaced',
  description:
    'A process of the controller, which has copies of modules for policy servers. Written by the process itself, and owned by its Pod.',
  spec: object('The process.', {
    podName: optional(text('The pod of the process, if any.', { maxLength: 253 })),
    nodeName: optional(text('The node of the pod.', { maxLength: 253 })),
    controlAddress: text('`host:port` where policy servers and other controllers reach it, over mutual TLS.', {
      maxLength: 300,
    }),
    version: optional(text('The version of the product.', { maxLength: 64 })),
    startedAt: optional(
      time('When the process started: policy servers ask one that has just started for what they lack.'),
    ),
  }),
  status: object('Not used yet.', { conditions: optional(CONDITIONS) }),
  columns: [
    column('Address', '.spec.controlAddress'),
    column('Version', '.spec.version'),
    column('Started', '.spec.startedAt', { type: 'date' }),
    AGE_COLUMN,
  ],
  example: {
    metadata: { name: 'portcullis-controller-7d4b9c6f5-k8wzq', namespace: 'portcullis' },
    spec: {
      podName: 'portcullis-controller-7d4b9c6f5-k8wzq',
      nodeName: 'worker-1',
      controlAddress: '10.1.2.3:8444',
    },
  },
} as const satisfies KindDeclaration;

/** A process of the controller. */
export type ControllerReplica = ObjectOfKind<typeof controllerReplica>;
export const CONTROLLER_REPLICAS = ownKind(controllerReplica);
