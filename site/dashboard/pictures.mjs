// Makes the pictures of the pages for the documentation. The address is what spillway dashboard
// prints, the folder of the pictures follows.
import { join } from 'node:path'
import { end, launch, open } from './browser.mjs'

const [address, folder] = process.argv.slice(2)
const pages = {
  now: '/', next: '/next?object=rolloutgroup%2Fingester&namespace=mimir&if=approve%3Derrors',
  why: '/why/rolloutgroup/ingester?namespace=mimir', past: '/past/rolloutgroup/store?namespace=mimir&compare=1&compare=2',
}
const browser = await launch()
const tab = await open(browser, address, { viewport: { width: 1000, height: 640 } })
for (const [name, path] of Object.entries(pages)) {
  await tab.goto(new URL(path, address).href, { waitUntil: 'load' })
  await tab.screenshot({ path: join(folder, `dashboard-${name}.webp`), type: 'webp', quality: 60 })
}
await end(browser, `${Object.keys(pages).length} pictures`)
