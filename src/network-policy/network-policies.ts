import { knownKind } from '../resources/index.ts';

export const NETWORK_POLICIES = knownKind('networking.k8s.io/v1', 'NetworkPolicy');
