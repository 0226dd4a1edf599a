// A page that keeps every export of the package, as a console or a playground does, and computes something.

import * as sn from 'sinter';

Object.assign(globalThis, { sn });

const device = new URLSearchParams(location.search).get('device');
if (device !== null) sn.setDevice(device);

void sn
  .tensor([1, 2, 3])
  .add(1)
  .data()
  .then((values) => console.log(values));
