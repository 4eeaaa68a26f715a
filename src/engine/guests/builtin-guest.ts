import { createRequire } from 'node:module';
import type { BuiltinName } from '../../modules/index.ts';
import type * as cel from './cel-guest.ts';
import type { PolicyGuest } from './policy-guest.ts';
import type * as networkPolicy from './network-policy-guest.ts';
import type * as podProfile from './pod-profile-guest.ts';
import type * as podSecurity from './pod-security-guest.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** A guest whose code is part of this product. */
export function createBuiltinGuest(name: BuiltinName): PolicyGuest {
  // Required on first use: most servers use few builtin modules, and each takes memory in every thread. An import is
  // asynchronous, and this thread handles its messages in order.
  switch (name) {
    case 'pod-profile': {
      const { PodProfileGuest } = require(`./pod-profile-guest.${extension}`) as typeof podProfile;
      return new PodProfileGuest();
    }
    case 'pod-security': {
      const { PodSecurityGuest } = require(`./pod-security-guest.${extension}`) as typeof podSecurity;
      return new PodSecurityGuest();
    }
    case 'network-policy-support': {
      const { NetworkPolicyGuest } = require(`./network-policy-guest.${extension}`) as typeof networkPolicy;
      return new NetworkPolicyGuest();
    }
    case 'cel': {
      const { CelGuest } = require(`./cel-guest.${extension}`) as typeof cel;
      return new CelGuest();
    }
    default:
      return name satisfies never;
  }
}
