import { useData, withBase } from 'vitepress'
import DefaultTheme from 'vitepress/theme'
import { h, nextTick, onMounted, watch } from 'vue'
import './site.css'

// Picture is the recording of the demo, below the first words of the start page.
const Picture = () => {
  const { picture } = useData().frontmatter.value
  return picture && h('div', { class: 'screen' }, h('img', { src: withBase(picture.src), alt: picture.alt, width: 804, height: 221 }))
}

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'home-hero-after': () => h(Picture) }),
  // The start page has no landmark of its own, by which a screen reader finds what matters.
  setup() {
    const { frontmatter } = useData()
    const mark = () =>
      nextTick(() => {
        const content = document.getElementById('VPContent')
        if (frontmatter.value.layout === 'home') content?.setAttribute('role', 'main')
        else content?.removeAttribute('role')
      })
    onMounted(mark)
    watch(() => frontmatter.value.layout, mark)
  },
}
